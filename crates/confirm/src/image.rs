//! Whether two cubins hold the same code.

use std::collections::BTreeMap;

use object::read::elf::{ElfFile64, FileHeader};
use object::{Object, ObjectSection};

/// Why two images differ, or cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageDifference {
    #[error("the image is no cubin that can be read")]
    Unreadable,
    #[error("section {0} differs")]
    Section(String),
    #[error("the images are for different machines or of different formats")]
    Header,
}

/// Compares everything but debugging information, which names files, and tables of names.
pub fn same_code(first: &[u8], second: &[u8]) -> Result<(), ImageDifference> {
    if first == second {
        return Ok(());
    }
    let (header, sections) = code(first)?;
    let (other_header, other_sections) = code(second)?;
    if header != other_header {
        return Err(ImageDifference::Header);
    }
    for name in sections.keys().chain(other_sections.keys()) {
        if sections.get(name) != other_sections.get(name) {
            return Err(ImageDifference::Section(name.clone()));
        }
    }
    Ok(())
}

type Code<'a> = ((u16, u32), BTreeMap<String, Vec<&'a [u8]>>);

/// Machine and flags, and the contents of all sections that decide what the code does.
fn code(image: &[u8]) -> Result<Code<'_>, ImageDifference> {
    let unreadable = |_| ImageDifference::Unreadable;
    let file: ElfFile64<'_> = ElfFile64::parse(image).map_err(unreadable)?;
    let endian = file.endian();
    let header = (file.elf_header().e_machine(endian).0, file.elf_header().e_flags(endian).0);
    let mut sections: BTreeMap<String, Vec<&[u8]>> = BTreeMap::new();
    for section in file.sections() {
        let name = section.name().map_err(unreadable)?.to_owned();
        if !is_description(&name) {
            sections.entry(name).or_default().push(section.data().map_err(unreadable)?);
        }
    }
    // An image without code is none.
    if !sections.keys().any(|name| name.starts_with(".text.")) {
        return Err(ImageDifference::Unreadable);
    }
    Ok((header, sections))
}

fn is_description(name: &str) -> bool {
    name.contains("debug")
        || [".symtab", ".strtab", ".shstrtab", ".note", ".nv.merc.symtab", ".nv.callgraph", ".comment"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}
