use camino::Utf8PathBuf;

pub(super) const HELP: &str = "\
/load FILE        take up a module; a pasted one ends with a line that holds a dot, or with Ctrl-D
/another          ask for another candidate
/improve [N]      ask for one that is better than number N [the best one, or the last]
/list             all candidates of this module
/show [N]         the file
/verdict [N]      its verdict
/compare N M      what differs, in text and in figures
/save FILE [N]    write the file
/author NAME      ask somebody else: offline, a name in tilewright.toml, replay:PATH
/quit             or Ctrl-D
";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// A module's text.
    Module(String),
    Load(Utf8PathBuf),
    Another,
    Improve(Option<u64>),
    List,
    Show(Option<u64>),
    Verdict(Option<u64>),
    Compare(u64, u64),
    Save(Utf8PathBuf, Option<u64>),
    Author(String),
    Help,
    Quit,
}

impl Command {
    /// A line that begins with a slash; or what is wrong with it.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let words: Vec<&str> = words.collect();
        let number = |word: &str| word.parse::<u64>().map_err(|_| format!("{word:?} is no number of a candidate"));
        match (name, words.as_slice()) {
            ("/load", [path]) => Ok(Self::Load((*path).into())),
            ("/another", []) => Ok(Self::Another),
            ("/improve", []) => Ok(Self::Improve(None)),
            ("/improve", [sample]) => Ok(Self::Improve(Some(number(sample)?))),
            ("/list", []) => Ok(Self::List),
            ("/show", []) => Ok(Self::Show(None)),
            ("/show", [sample]) => Ok(Self::Show(Some(number(sample)?))),
            ("/verdict", []) => Ok(Self::Verdict(None)),
            ("/verdict", [sample]) => Ok(Self::Verdict(Some(number(sample)?))),
            ("/compare", [one, other]) => Ok(Self::Compare(number(one)?, number(other)?)),
            ("/save", [path]) => Ok(Self::Save((*path).into(), None)),
            ("/save", [path, sample]) => Ok(Self::Save((*path).into(), Some(number(sample)?))),
            ("/author", [name]) => Ok(Self::Author((*name).into())),
            ("/help", _) => Ok(Self::Help),
            ("/quit" | "/exit", _) => Ok(Self::Quit),
            _ => match HELP.lines().find(|line| line.split_whitespace().next() == Some(name)) {
                Some(usage) => Err(format!("give it so: {usage}")),
                None => Err(format!("there is no {name}: /help lists what there is")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_help_shows_is_understood_and_mistakes_are_told() {
        for line in HELP.lines() {
            let example = line.split("  ").next().unwrap().replace(['[', ']'], "");
            let example: String =
                example.replace(" N", " 1").replace(" M", " 2").replace("FILE 1", "file 1").replace("1AME", "x");
            assert!(Command::parse(&example).is_ok(), "{example}");
        }
        assert_eq!(Command::parse("/save a.py 3"), Ok(Command::Save("a.py".into(), Some(3))));
        assert_eq!(Command::parse("/compare 1 2"), Ok(Command::Compare(1, 2)));
        assert!(Command::parse("/compare 1").unwrap_err().contains("/compare N M"));
        assert!(Command::parse("/show x").unwrap_err().contains("no number"));
        assert!(Command::parse("/sow").unwrap_err().contains("/help"));
    }
}
