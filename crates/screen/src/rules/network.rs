use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Refuses network access and downloads.
///
/// # Why is this bad?
/// An answer can be fetched, and results differ from run to run.
///
/// # Example
/// ```python
/// torch.hub.load_state_dict_from_url(url)
/// ```
///
/// # Use instead
/// Nothing: a candidate is one file.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule { id: "network", tier: Tier::Proof, help: "remove it; a candidate is one file" },
    paths: &[
        "socket",
        "_socket",
        "ssl",
        "http",
        "urllib",
        "urllib3",
        "requests",
        "httpx",
        "aiohttp",
        "ftplib",
        "smtplib",
        "telnetlib",
        "xmlrpc",
        "asyncore",
        "socketserver",
        "torch.hub",
        "torch.distributed",
        "huggingface_hub",
    ],
    except: &[],
    what: "uses the network",
};
