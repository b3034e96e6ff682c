use stablebench_replica::{Frame, FrameKind, Instructions, Node, Profile};

use super::flame::{Function, HEAP_PAGES};
use super::*;
use crate::terminal::Terminal;

/// `a` calls `b` and `c`, which calls `a`; two functions are called `b`.
fn profile() -> Profile {
    let names = ["a", "b", "c; d", "b", "e 5"];
    let kind = |index: usize| FrameKind::Function(index as u32);
    let frame =
        |(index, name): (usize, &&str)| Frame { kind: kind(index), name: (*name).to_owned() };
    let node = |parent, frame, calls, instructions| Node {
        parent,
        frame,
        calls,
        instructions: Instructions(instructions),
    };
    Profile {
        frames: names.iter().enumerate().map(frame).collect(),
        nodes: vec![
            node(None, 0, 1, 10),
            node(Some(0), 1, 2, 20),
            node(Some(0), 2, 1, 0),
            node(Some(2), 0, 1, 30),
            node(Some(0), 3, 3, 5),
            node(Some(3), 4, 1, 7),
        ],
        instructions: Instructions(72),
        heap_pages: Instructions(2_000),
        folded: 1,
    }
}

fn flame(messages: usize) -> Flame {
    let mut flame = Flame::default();
    (0..messages).for_each(|_| flame.add(&profile()).unwrap());
    flame
}

fn heading() -> Heading {
    Heading { title: "<title> & more".to_owned(), command: "stablebench profile".to_owned() }
}

#[test]
fn stacks_are_joined_by_names() {
    let flame = flame(2);
    assert_eq!((flame.messages, flame.instructions, flame.heap_pages), (2, 144, 4_000));
    let expected = "[heap pages changed] 4000\na 20\na;b 50\na;c: d;a 60\na;c: d;a;e_5 14\n";
    assert_eq!(folded(&flame), expected);
}

#[test]
fn recursive_calls_are_counted_once() {
    let of = |name: &str, calls, own, total| Function { name: name.to_owned(), calls, own, total };
    let expected = [
        of(HEAP_PAGES, 1, 2_000, 2_000),
        of("a", 2, 40, 72),
        of("b", 5, 25, 25),
        of("e 5", 1, 7, 7),
        of("c; d", 1, 0, 37),
    ];
    assert_eq!(flame(1).functions(), expected);
}

#[test]
fn a_profile_that_does_not_add_up_is_refused() {
    let wrong = Profile { instructions: Instructions(73), ..profile() };
    let error = Flame::default().add(&wrong).unwrap_err().to_string();
    assert!(error.contains("contains 2072 instructions, not 2073"), "{error}");
}

#[test]
fn the_most_expensive_functions() {
    insta::assert_snapshot!(table(&flame(1), Terminal::default()));
    let narrow = table(&flame(1), Terminal { colour: false, width: Some(80) });
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
}

#[test]
fn differences_have_both_numbers() {
    let mut after = profile();
    after.nodes.truncate(3);
    after.nodes[2].instructions = Instructions(9);
    (after.instructions, after.heap_pages) = (Instructions(39), Instructions(0));
    let mut other = Flame::default();
    other.add(&after).unwrap();
    let expected = "[heap pages changed] 2000 0\na 10 10\na;b 25 20\na;c: d 0 9\na;c: d;a 30 0\n\
                    a;c: d;a;e_5 7 0\n";
    assert_eq!(difference(&flame(1), &other), expected);
    let picture = svg_of_difference(&flame(1), &other, &heading()).unwrap();
    assert!(picture.contains("2 072 instructions before, 39 after"), "{picture}");
}

#[test]
fn a_picture_is_deterministic_and_complete() {
    let picture = svg(&flame(1), &heading()).unwrap();
    assert_eq!(picture, svg(&flame(1), &heading()).unwrap());
    for part in [
        "&lt;title&gt; &amp; more",
        "72 instructions and 2 000 for heap pages · stablebench profile",
        "[heap pages changed] (2,000 instructions, 96.53%)",
        "a (72 instructions, 3.47%)",
    ] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
}

#[test]
fn json_contains_the_tree() {
    let text = json(&flame(1), &heading()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["instructions"], 72);
    let nodes = value["nodes"].as_array().unwrap();
    let sum: u64 = nodes.iter().map(|node| node["self"].as_u64().unwrap()).sum();
    assert_eq!(sum, 2_072);
    let function = |node: &serde_json::Value| {
        let place = node["function"].as_u64().unwrap() as usize;
        value["functions"][place]["name"].as_str().unwrap().to_owned()
    };
    let names: Vec<String> = nodes.iter().map(function).collect();
    assert_eq!(names, ["a", "b", "c; d", "a", "e 5", HEAP_PAGES]);
    assert_eq!(nodes[3]["parent"], 2);
    assert_eq!(nodes[0]["total"], 72);
}

/// The weights of the samples are the counts, even if one sample cannot represent them.
#[test]
fn the_firefox_profile_contains_all_instructions() {
    let mut large = profile();
    large.nodes[0].instructions = Instructions(10 + 5_000_000_000);
    large.instructions = Instructions(72 + 5_000_000_000);
    let mut flame = Flame::default();
    flame.add(&large).unwrap();
    let text = firefox(&flame, &heading()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let weights = value["threads"][0]["samples"]["weight"].as_array().unwrap();
    let sum: i64 = weights.iter().map(|weight| weight.as_i64().unwrap()).sum();
    assert_eq!(sum as u64, flame.all());
    assert_eq!(weights.len(), 4 + 3);
}
