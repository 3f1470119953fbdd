//! The verdict on every sort of directory, without a directory.

use super::*;

const US: Us = Us {
    user: 1000,
    unmapped: None,
};

/// All the names that have ever been removed or cut by name.
const NAMES: [&str; 15] = [
    "building",
    "control.sock",
    "db",
    "high-water",
    "identity.json",
    "kubeconfig",
    "lock",
    "node",
    "node.sock",
    "port",
    "ready",
    "relaxed",
    "room",
    "scratch",
    "up.log",
];

fn entry(name: &str, sort: Sort) -> Entry {
    Entry {
        name: name.to_owned(),
        sort,
        owner: 1000,
        mode: 0o700,
    }
}

fn step(path: &str, owner: u32, mode: u32) -> Step {
    Step {
        path: path.into(),
        sort: Sort::Directory,
        owner,
        mode,
        has_own_group: false,
    }
}

/// An empty directory of ours in a safe place.
fn empty() -> Seen {
    Seen {
        us: US,
        is_root: false,
        is_home: false,
        way: vec![step("/", 0, 0o755), step("/home", 0, 0o755)],
        place: Some(Place {
            sort: Sort::Directory,
            owner: 1000,
            mode: 0o700,
            entries: Vec::new(),
            format: None,
            starting: None,
            inside: Vec::new(),
        }),
    }
}

impl Seen {
    fn with(mut self, change: impl FnOnce(&mut Place)) -> Self {
        change(self.place.as_mut().unwrap());
        self
    }

    fn holding(self, names: &[(&str, Sort)]) -> Self {
        self.with(|place| {
            place
                .entries
                .extend(names.iter().map(|(name, sort)| entry(name, *sort)));
            place.entries.sort();
        })
    }

    fn with_format(self, number: u32) -> Self {
        let seen = self.holding(&[("format", Sort::File)]);
        seen.with(|place| place.format = Some(format!("sundown data format {number}\n")))
    }

    fn marked(self) -> Self {
        let seen = self.holding(&[("starting", Sort::File)]);
        seen.with(|place| place.starting = Some(mark()))
    }

    fn with_state(self, inside: &[(&str, Sort)]) -> Self {
        let seen = self.holding(&[("state", Sort::Directory)]);
        seen.with(|place| {
            place.inside = inside
                .iter()
                .map(|(name, sort)| entry(name, *sort))
                .collect();
        })
    }
}

fn foreign(name: &str) -> Verdict {
    let entry = name.to_owned();
    Verdict::Refused(Refusal::Foreign { entry })
}

fn odd(name: &str) -> Verdict {
    let entry = name.to_owned();
    Verdict::Refused(Refusal::Odd { entry })
}

fn occupied(name: &str) -> Verdict {
    let entry = name.to_owned();
    Verdict::Refused(Refusal::Occupied { entry })
}

#[test]
fn what_is_missing_is_made_and_what_is_empty_is_claimed() {
    let missing = Seen {
        place: None,
        ..empty()
    };
    assert_eq!(may_claim(&missing), Verdict::Make);
    assert_eq!(may_claim(&empty()), Verdict::ClaimEmpty);
    // Readable by others: it is ours, and closed when it is claimed.
    let readable = empty().with(|place| place.mode = 0o755);
    assert_eq!(may_claim(&readable), Verdict::ClaimEmpty);
}

#[test]
fn every_name_of_ours_in_a_directory_without_proof_is_somebody_elses() {
    for name in NAMES.iter().chain(&["state", "starting", "thesis.pdf"]) {
        for sort in [Sort::File, Sort::Directory, Sort::Link] {
            let seen = empty().holding(&[(name, sort)]);
            assert_eq!(may_claim(&seen), foreign(name), "{name} {sort:?}");
        }
    }
    let all = NAMES.map(|name| (name, Sort::Directory));
    assert_eq!(may_claim(&empty().holding(&all)), foreign("building"));
    // Of other words, the mark is none.
    let seen = empty().holding(&[("starting", Sort::File)]);
    let seen = seen.with(|place| place.starting = Some("soon\n".to_owned()));
    assert_eq!(may_claim(&seen), foreign("starting"));
    // A mark behind a link has no text, and a format behind one neither.
    let seen = empty().holding(&[("format", Sort::Link)]);
    assert_eq!(may_claim(&seen), foreign("format"));
}

#[test]
fn a_first_start_goes_on_from_each_of_its_steps() {
    let marked = empty().marked();
    assert_eq!(may_claim(&marked), Verdict::Interrupted(Begun::Marked));
    let mut inside = Vec::new();
    for next in ["lock", "up.log", "building", "ready", "high-water"] {
        let seen = empty().marked().with_state(&inside);
        assert_eq!(
            may_claim(&seen),
            Verdict::Interrupted(Begun::Made),
            "{inside:?}"
        );
        inside.push((next, Sort::File));
    }
    // The mark has become the proof; the database may still wait to take its place.
    let seen = empty().with_format(2).with_state(&inside);
    assert_eq!(may_claim(&seen), Verdict::Ours);
}

#[test]
fn a_directory_with_its_proof_is_ours_whatever_lies_beside() {
    let ours = || {
        empty()
            .with_format(2)
            .with_state(&[("db", Sort::Directory)])
    };
    assert_eq!(may_claim(&ours()), Verdict::Ours);
    let beside = [
        ("thesis.pdf", Sort::File),
        ("scratch", Sort::Directory),
        ("db", Sort::Link),
    ];
    assert_eq!(may_claim(&ours().holding(&beside)), Verdict::Ours);
    // A mark beside the proof says nothing.
    assert_eq!(may_claim(&ours().marked()), Verdict::Ours);
    // Without its state it is damaged, which the start tells.
    assert_eq!(may_claim(&empty().with_format(2)), Verdict::Ours);
}

#[test]
fn what_sundown_never_makes_is_refused_also_beside_a_proof() {
    let ours = || empty().with_format(2);
    let linked = ours().with_state(&[("db", Sort::Directory), ("high-water", Sort::Link)]);
    assert_eq!(may_claim(&linked), odd("state/high-water"));
    assert_eq!(
        may_claim(&ours().holding(&[("state", Sort::Link)])),
        odd("state")
    );
    let open = ours().with_state(&[]);
    let open = open.with(|place| place.entries.iter_mut().for_each(|it| it.mode = 0o777));
    assert_eq!(may_claim(&open), odd("state"));
    let of_another = ours().with_state(&[]);
    let of_another = of_another.with(|place| place.entries.iter_mut().for_each(|it| it.owner = 7));
    assert_eq!(may_claim(&of_another), odd("state"));
    let before = empty().with_format(1).holding(&[("node", Sort::Link)]);
    assert_eq!(may_claim(&before), odd("node"));
}

#[test]
fn other_formats_are_refused_by_name() {
    let newer = may_claim(&empty().with_format(7));
    assert_eq!(newer, Verdict::Refused(Refusal::Newer { found: 7 }));
    for text in [
        "ext4\n",
        "sundown data format 2",
        "sundown data format x\n",
        "sundown data format 0\n",
    ] {
        let seen = empty().with_format(2);
        let seen = seen.with(|place| place.format = Some(text.to_owned()));
        assert_eq!(
            may_claim(&seen),
            Verdict::Refused(Refusal::Format),
            "{text}"
        );
    }
}

fn refused(seen: &Seen) -> Refusal {
    match may_claim(seen) {
        Verdict::Refused(refusal) => refusal,
        verdict => panic!("{verdict:?}"),
    }
}

#[test]
fn the_way_to_the_directory_must_be_ours() {
    for seen in [
        empty(),
        empty().with_format(2),
        Seen {
            place: None,
            ..empty()
        },
    ] {
        let root = Seen {
            is_root: true,
            ..seen.clone()
        };
        assert_eq!(refused(&root), Refusal::Root);
        let home = Seen {
            is_home: true,
            ..seen.clone()
        };
        assert_eq!(refused(&home), Refusal::Home);
        let way = vec![step("/", 0, 0o755), step("/shared", 0, 0o777)];
        let shared = Seen {
            way,
            ..seen.clone()
        };
        assert!(matches!(
            refused(&shared),
            Refusal::Way(Distrust::Writable { .. })
        ));
        let way = vec![step("/", 0, 0o755), step("/home/eve", 7, 0o755)];
        let eve = Seen { way, ..seen };
        assert!(matches!(
            refused(&eve),
            Refusal::Way(Distrust::Owner { owner: 7, .. })
        ));
    }
}

#[test]
fn the_directory_itself_must_be_ours_alone() {
    for seen in [empty(), empty().with_format(2)] {
        let sticky = Seen {
            way: vec![
                step("/", 0, 0o755),
                step("/tmp", 0, 0o1777),
                step("/tmp/x", 1000, 0o700),
            ],
            ..seen.clone()
        };
        assert!(!matches!(may_claim(&sticky), Verdict::Refused(_)));
        let place = |change: fn(&mut Place)| refused(&seen.clone().with(change));
        assert_eq!(place(|it| it.sort = Sort::Link), Refusal::Link);
        assert_eq!(place(|it| it.sort = Sort::File), Refusal::NotADirectory);
        assert_eq!(
            place(|it| it.owner = 7),
            Refusal::Owner { owner: 7, us: 1000 }
        );
        assert_eq!(
            place(|it| it.owner = 0),
            Refusal::Owner { owner: 0, us: 1000 }
        );
        assert_eq!(
            place(|it| it.mode = 0o770),
            Refusal::Writable { mode: 0o770 }
        );
        assert_eq!(
            place(|it| it.mode = 0o1777),
            Refusal::Writable { mode: 0o1777 }
        );
        let root = Us { user: 0, ..US };
        let by_root = Seen {
            us: root,
            ..seen.clone()
        };
        assert_eq!(refused(&by_root), Refusal::Owner { owner: 1000, us: 0 });
    }
}

#[test]
fn a_directory_of_before_is_taken_over_unless_something_is_in_the_way() {
    let before = || {
        empty()
            .with_format(1)
            .holding(&[("db", Sort::Directory), ("lock", Sort::File)])
    };
    assert_eq!(may_claim(&before()), Verdict::Migrate(Moved::Nothing));
    assert_eq!(
        may_claim(&before().marked()),
        Verdict::Migrate(Moved::Nothing)
    );
    let begun = before().marked().with_state(&[("moving", Sort::File)]);
    assert_eq!(may_claim(&begun), Verdict::Migrate(Moved::Nothing));
    let taken = empty().with_format(2).with_state(&[("moving", Sort::File)]);
    assert_eq!(may_claim(&taken), Verdict::Migrate(Moved::Some));
    assert_eq!(may_claim(&before().with_state(&[])), occupied("state"));
    let seen = before().holding(&[("starting", Sort::File)]);
    assert_eq!(may_claim(&seen), occupied("starting"));
}

#[test]
fn a_takeover_moves_what_was_made_and_the_lock_last() {
    let names = [
        ("damaged-2", Sort::Directory),
        ("damaged-x", Sort::Directory),
        ("db", Sort::Directory),
        ("kubeconfig", Sort::File),
        ("lock", Sort::File),
        ("node", Sort::Directory),
        ("port", Sort::Directory),
        ("thesis.pdf", Sort::File),
        ("up.log", Sort::File),
    ];
    let mut seen = empty().with_format(1).holding(&names);
    let mut moves = Vec::new();
    while let Verdict::Migrate(_) = may_claim(&seen) {
        let next = next_move(seen.place.as_ref().unwrap()).unwrap();
        moves.push(next.clone());
        assert!(moves.len() < 20, "{moves:?}");
        seen = match next {
            Move::Mark => seen.marked(),
            Move::MakeState => seen.with_state(&[]),
            Move::NoteMoving => seen.with(|it| it.inside.push(entry(MOVING, Sort::File))),
            Move::TakeOver => seen.with(|it| {
                it.entries.retain(|it| it.name != STARTING);
                it.format = it.starting.take();
            }),
            Move::Take(name) => seen.with(|it| {
                let at = it.entries.iter().position(|it| it.name == name).unwrap();
                it.inside.push(it.entries.remove(at));
            }),
            Move::Finish => seen.with(|it| it.inside.retain(|it| it.name != MOVING)),
        };
    }
    let taken = ["damaged-2", "db", "node", "up.log", "lock"];
    let begin = [
        Move::Mark,
        Move::MakeState,
        Move::NoteMoving,
        Move::TakeOver,
    ]
    .into_iter();
    let taken = taken.map(|name| Move::Take(name.to_owned()));
    let expect: Vec<Move> = begin.chain(taken).chain([Move::Finish]).collect();
    assert_eq!(moves, expect);
    assert_eq!(may_claim(&seen), Verdict::Ours);
    let left = seen.place.unwrap().entries;
    let left: Vec<&str> = left.iter().map(|it| &*it.name).collect();
    assert_eq!(
        left,
        [
            "damaged-x",
            "format",
            "kubeconfig",
            "port",
            "state",
            "thesis.pdf"
        ]
    );
}

#[test]
fn every_refusal_says_why() {
    for (refusal, word) in [
        (Refusal::PodsRun, "pods of an older version"),
        (Refusal::Unfinished, "not finished"),
        (Refusal::Newer { found: 3 }, "format 3"),
        (Refusal::Writable { mode: 0o777 }, "0777"),
    ] {
        assert!(refusal.to_string().contains(word), "{refusal}");
    }
}
