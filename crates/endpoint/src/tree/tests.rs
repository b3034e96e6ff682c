use std::collections::BTreeMap;

use ic_certification::LookupResult;
use ic_certification::hash_tree::{SubtreeLookupResult, pruned};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::{Path, Tree};

fn labels() -> impl Strategy<Value = Vec<u8>> {
    vec(0_u8..4, 0..3)
}

/// Two levels of labels over values.
fn trees() -> impl Strategy<Value = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>> {
    btree_map(labels(), btree_map(labels(), vec(any::<u8>(), 0..3), 0..8), 0..8)
}

fn tree(model: &BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>) -> Tree {
    Tree::node(model.iter().map(|(name, below)| {
        let below = below.iter().map(|(name, value)| (name.clone(), Tree::leaf(value.clone())));
        (name.clone(), Tree::node(below))
    }))
}

proptest! {
    /// Whatever is shown, the root's hash is that of the tree, what was asked for is found or
    /// shown to be missing, and values that were not asked for do not show.
    #[test]
    fn witnesses_show_what_was_asked_for(
        model in trees(),
        asked in vec((labels(), labels()), 0..4),
    ) {
        let tree = tree(&model);
        let paths: Vec<Path> = asked.iter().map(|(a, b)| vec![a.clone(), b.clone()]).collect();
        let witness = tree.witness(&paths);
        prop_assert_eq!(witness.digest(), tree.digest());
        for (first, second) in &asked {
            let found = witness.lookup_path([first, second]);
            match model.get(first).and_then(|below| below.get(second)) {
                Some(value) => prop_assert_eq!(found, LookupResult::Found(value)),
                None => prop_assert_eq!(found, LookupResult::Absent),
            }
        }
        for (first, below) in &model {
            for second in below.keys() {
                if !asked.contains(&(first.clone(), second.clone())) {
                    let found = witness.lookup_path([first, second]);
                    prop_assert!(!matches!(found, LookupResult::Found(_)), "{found:?}");
                }
            }
        }
    }
}

#[test]
fn all_below_a_path_is_shown() {
    let tree = Tree::node([
        ("a", Tree::node([("x", Tree::leaf("1")), ("y", Tree::leaf("2"))])),
        ("b", Tree::node([("z", Tree::leaf("3"))])),
    ]);
    let witness = tree.witness(&[vec![b"a".to_vec()]]);
    let SubtreeLookupResult::Found(below) = witness.lookup_subtree(["a"]) else {
        panic!("{witness:?}")
    };
    assert_eq!(below.lookup_path(["y"]), LookupResult::Found(b"2"));
    assert_eq!(witness.lookup_path(["b", "z"]), LookupResult::Unknown);
    assert_eq!(tree.witness(&[]), pruned(tree.digest()));
    assert_eq!(tree.witness(&[vec![]]).digest(), tree.digest());
}
