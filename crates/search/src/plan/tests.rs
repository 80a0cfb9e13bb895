use proptest::prelude::*;
use serde_json::json;
use tilewright_author::Answer;
use tilewright_contract::Verdict;

use super::*;
use crate::Checked;

/// A candidate that is accepted with this speedup; without one, it has no code.
fn node(sample: u64, parent: Option<u64>, speedup: Option<f64>) -> Node {
    let source = if speedup.is_some() { json!({"Ok": "x"}) } else { json!({"Err": {"why": "no_block"}}) };
    let answer: Answer = serde_json::from_value(json!({"variant": "v", "source": source})).unwrap();
    let checked = speedup.map(|value| {
        let estimate = json!({"value": value, "low": value, "high": value});
        let verdict: Verdict = serde_json::from_value(json!({
            "schema": Verdict::SCHEMA, "verdict": "accepted", "fault": "none", "target": "cpu", "arch": null, "trust": "replay",
            "problem": {"path": "p", "digest": "d"}, "candidate": {"path": "c", "digest": "d"}, "profiles": {}, "reasons": [],
            "resources": {}, "stages": [], "weights": null, "timing": {"device_us": estimate, "warm_us": estimate, "calls": 1,
                "overhead_us": 0.0, "launches": [], "baselines": [{"baseline": "eager", "device_us": estimate, "calls": 1,
                    "graph": true, "speedup": estimate}]},
        }))
        .unwrap();
        Checked { verdict, same_as: None, twin: None, confirmed: false }
    });
    Node { sample, parent, round: 0, answer, checked }
}

/// A tree of one round a candidate.
fn tree(nodes: Vec<Node>) -> Tree {
    Tree {
        rounds: nodes.iter().map(|node| vec![Planned { sample: node.sample, parent: node.parent }]).collect(),
        nodes: nodes.into_iter().map(|node| (node.sample, node)).collect(),
    }
}

fn search(select: Selection, children: u32) -> Plan {
    Plan::Search { children, rounds: 100, select, window: Window::Last(2) }
}

fn parents(plan: Plan, tree: &Tree) -> Vec<Option<u64>> {
    plan.next(tree, true).into_iter().map(|planned| planned.parent).collect()
}

#[test]
fn a_first_round_has_no_parents_and_the_last_one_no_successor() {
    for (plan, width) in [(Plan::Chains { n: 3, rounds: 1 }, 3), (search(Selection::Reward, 5), 5)] {
        let first = plan.next(&Tree::default(), true);
        assert_eq!(first.iter().map(|planned| planned.sample).collect::<Vec<_>>(), (0..width).collect::<Vec<_>>());
        assert!(first.iter().all(|planned| planned.parent.is_none()));
    }
    assert!(Plan::Chains { n: 1, rounds: 1 }.next(&tree(vec![node(0, None, None)]), true).is_empty());
}

#[test]
fn children_go_to_the_best_or_also_to_the_seldom_tried() {
    let known = || {
        tree(vec![node(0, None, Some(1.0)), node(1, None, Some(3.0)), node(2, None, None), node(3, Some(1), Some(2.0))])
    };
    assert_eq!(parents(search(Selection::Reward, 2), &known()), [Some(1), Some(3)]);
    assert_eq!(parents(search(Selection::Reward, 6), &known()), [1, 3, 0, 2, 1, 3].map(Some));
    assert_eq!(parents(search(Selection::Ucb { explore: 0.0 }, 3), &known()), [Some(1); 3]);
    let wide = parents(search(Selection::Ucb { explore: 50.0 }, 4), &known());
    assert_eq!(wide.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{wide:?}");
    // An author who does not learn gets no parents, and no second turn.
    assert!(search(Selection::Reward, 2).next(&known(), false).iter().all(|planned| planned.parent.is_none()));
    assert!(Plan::Chains { n: 2, rounds: 9 }.next(&known(), false).is_empty());
}

#[test]
fn conversations_that_a_larger_n_adds_begin_before_the_others_go_on() {
    // Conversation 0 has had two turns, conversation 1 one.
    let known = || tree(vec![node(0, None, Some(1.0)), node(1, None, None), node(2, Some(0), Some(2.0))]);
    let chains = |n, rounds| Plan::Chains { n, rounds };
    assert_eq!(parents(chains(2, 3), &known()), [Some(1), Some(2)]);
    assert_eq!(parents(chains(2, 2), &known()), [Some(1)]);
    assert_eq!(parents(chains(2, 1), &known()), []);
    assert_eq!(parents(chains(4, 3), &known()), [None, None]);
    let numbers: Vec<u64> = chains(4, 3).next(&known(), false).iter().map(|planned| planned.sample).collect();
    assert_eq!(numbers, [3, 4], "an author who lists candidates goes on with his list");
    assert_eq!(parents(chains(1, 1), &known()), [], "a smaller n takes nothing back");
}

proptest! {
    #[test]
    fn the_best_window_is_the_best_of_all(speedups in prop::collection::vec(prop::option::of(0.0..4.0f64), 1..12), size in 1u32..6) {
        let nodes: Vec<Node> = (0..).zip(&speedups).map(|(sample, &speedup)| node(sample, None, speedup)).collect();
        let path: Vec<&Node> = nodes.iter().collect();
        let window = Window::Best(size).of(&path);
        prop_assert_eq!(window.len(), path.len().min(size as usize));
        prop_assert!(window.windows(2).all(|pair| pair[1].sample == pair[0].sample + 1));
        let sum = |from: usize| -> f64 { (from..from + window.len()).map(|at| path[at].reward()).sum() };
        let best = (0..=path.len() - window.len()).map(sum).fold(f64::MIN, f64::max);
        prop_assert!((sum(window[0].sample as usize) - best).abs() < 1e-12);
        let last = Window::Last(size).of(&path);
        prop_assert_eq!(last.last().map(|node| node.sample), path.last().map(|node| node.sample));
    }

    #[test]
    fn planned_numbers_are_new_and_parents_known(
        speedups in prop::collection::vec(prop::option::of(0.0..4.0f64), 1..10), children in 1u32..6, explore in 0.0..3.0f64,
    ) {
        let known = tree((0..).zip(&speedups).map(|(sample, &speedup)| node(sample, None, speedup)).collect());
        for select in [Selection::Reward, Selection::Ucb { explore }] {
            let planned = search(select, children).next(&known, true);
            prop_assert_eq!(planned.len(), children as usize);
            for (planned, sample) in planned.iter().zip(known.next_sample()..) {
                prop_assert_eq!(planned.sample, sample);
                prop_assert!(planned.parent.is_some_and(|parent| known.nodes.contains_key(&parent)));
            }
            prop_assert_eq!(search(select, children).next(&known, true), planned);
        }
    }
}
