use super::*;
use serde_json::json;

fn verdict(kind: &str, further: serde_json::Value) -> Verdict {
    let mut document = json!({
        "schema": Verdict::SCHEMA, "verdict": kind, "fault": "candidate", "target": "cpu", "arch": null, "trust": "replay",
        "problem": {"path": "secret/p.py", "digest": "d"}, "candidate": {"path": "c.py", "digest": "d"},
        "profiles": {}, "reasons": [], "resources": {}, "timing": null, "stages": [], "weights": null,
    });
    for (key, value) in further.as_object().expect("an object") {
        document[key] = value.clone();
    }
    serde_json::from_value(document).expect("a verdict")
}

const SOURCE: &str = "import triton\n\nx = torch.relu(y)\n";
const STYLES: [Style; 4] = [Style::Json, Style::Compact, Style::Coach, Style::Line];

fn rejected() -> Verdict {
    verdict(
        "rejected",
        json!({"reasons": [{"code": "torch-compute", "message": "torch.relu computes", "line": 3, "help": "write a kernel"}]}),
    )
}

#[test]
fn every_style_names_what_was_decided_and_why() {
    for style in STYLES {
        let text = feedback(&rejected(), SOURCE, style);
        assert!(text.contains("rejected") && text.contains("torch.relu computes"), "{text}");
        assert!(!text.contains("secret/p.py"), "{text}");
    }
    assert_eq!(feedback(&rejected(), SOURCE, Style::Line), "rejected: line 3: torch.relu computes");
    let coach = feedback(&rejected(), SOURCE, Style::Coach);
    let places: Vec<usize> = ["RESULT\n", "WHY\n", "    x = torch.relu(y)\n", "NEXT STEP\n- write a kernel"]
        .map(|t| coach.find(t).expect(t))
        .into();
    assert!(places.is_sorted(), "{coach}");
}

#[test]
fn wrong_values_are_told_by_their_worst_element() {
    let worst =
        json!({"path": "output", "index": [1, 2], "got": "1.5", "want": "2", "case": "default", "regime": "seed"});
    let metrics = json!({"max_abs": 0.5, "max_rel": 0.25, "mean_rel": 0.1, "rms": 0.1, "mismatched": 3, "elements": 8, "worst": worst});
    let outcome = json!({"tilewright-1": {"pass": false, "version": 1, "metrics": metrics}});
    let verdict = verdict("incorrect", json!({"profiles": outcome, "reasons": [{"code": "values", "message": "off"}]}));
    for style in [Style::Compact, Style::Coach] {
        let text = feedback(&verdict, SOURCE, style);
        assert!(text.contains("3 of 8 elements") && text.contains("output[1, 2]: got 1.5, want 2"), "{text}");
    }
}

#[test]
fn an_accepted_candidate_hears_where_its_time_goes() {
    let cost = json!({"kernel": "gather", "line": 9, "grid": [4, 1, 1], "bytes_loaded": 4096, "bytes_stored": 0,
        "unique_bytes": 4096, "sectors": 1024, "least_sectors": 128, "atomics": 0, "flops": 10, "dot_flops": 0, "coalescing": 0.125});
    let text = feedback(&verdict("accepted", json!({"costs": [cost]})), SOURCE, Style::Coach);
    for told in
        ["PERFORMANCE\nnot timed", "PER-KERNEL COST\ngather (line 9): grid 4x1x1", "accesses memory across rows"]
    {
        assert!(text.contains(told), "{told}: {text}");
    }
    let estimate = |value: f64| json!({"value": value, "low": value * 0.9, "high": value * 1.1});
    let timing = json!({"device_us": estimate(10.0), "warm_us": estimate(8.0), "calls": 100, "overhead_us": 1.0,
        "launches": [{"kernel": "a", "line": 4, "us": 2.0}, {"kernel": "b", "line": 7, "us": 8.0}],
        "baselines": [{"baseline": "eager", "device_us": estimate(15.0), "calls": 100, "graph": true, "speedup": estimate(1.5)}]});
    let timed = verdict("accepted", json!({"timing": timing}));
    let text = feedback(&timed, SOURCE, Style::Coach);
    for told in [
        "1.50 x against eager",
        "PER-KERNEL TIME\na (line 4): 2.00 us, 20 %\nb (line 7): 8.00 us, 80 %",
        "begin with b (line 7)",
        "2 launches: fuse",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert!(feedback(&timed, SOURCE, Style::Line).starts_with("accepted, 1.50 x against eager"));
}

#[test]
fn no_verdict_is_without_a_next_step_and_none_grows_without_bound() {
    for kind in VerdictKind::ALL {
        let reason = json!({"code": "x", "message": "é".repeat(5_000)});
        let verdict = verdict(kind.name(), json!({"reasons": vec![reason; 50]}));
        for style in STYLES {
            let text = feedback(&verdict, SOURCE, style);
            assert!(text.contains(kind.name()) && text.len() < 20_000, "{style:?}: {} bytes", text.len());
        }
        let coach = feedback(&verdict, SOURCE, Style::Coach);
        assert!(coach.split_once("NEXT STEP\n- ").is_some_and(|(_, step)| step.len() > 5), "{coach}");
    }
}
