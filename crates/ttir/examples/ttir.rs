//! `ttir FILE`: reads, verifies and prints a module in generic form; `ttir --strip FILE` without its locations.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args: Vec<_> = std::env::args().skip(1).collect();
    let strip = args.first().is_some_and(|arg| arg == "--strip");
    if strip {
        args.remove(0);
    }
    for path in args {
        let read = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        match read.and_then(|text| tilewright_ttir::parse(&text).map_err(|error| error.to_string())) {
            Ok(mut module) => {
                if let Err(error) = tilewright_ttir::verify(&module) {
                    eprintln!("{path}: {error}");
                    return ExitCode::FAILURE;
                }
                if strip {
                    module.strip_locations();
                }
                print!("{module}");
            }
            Err(error) => {
                eprintln!("{path}:{error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
