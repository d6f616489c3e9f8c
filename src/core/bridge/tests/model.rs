//! Any order of events against plugins that keep to the protocol: whatever happens, each caller is
//! settled once and with its own result, and no plugin runs a request twice.

mod plugin;
mod world;

use proptest::{collection::vec, prelude::*};

use world::World;

/// One thing that happens. Numbers pick among what there is.
#[derive(Debug, Clone)]
enum Do {
    /// A plugin opens a link and says hello, whatever became of its last link.
    Connect(usize),
    /// A plugin is reloaded: it forgets everything.
    Reload(usize),
    /// A plugin reads its next frame.
    Read(usize),
    /// The server reads the next frame of a link.
    Serve(usize),
    /// A plugin finishes a request.
    Finish(usize, usize),
    /// A plugin says a result again.
    Repeat(usize, usize),
    /// A plugin says something that nobody expects.
    Noise(usize, usize),
    /// A plugin says goodbye.
    Bye(usize),
    /// A link breaks, with all that is on its way.
    Cut(usize),
    /// The server learns that a link is gone.
    SeeClosed(usize),
    /// A frame was too large.
    NotSent(usize),
    Call {
        place: u64,
        ask: usize,
        patience: u64,
    },
    Abandon(usize),
    /// The serve session answers what it was asked first.
    Answer(bool),
    Patch,
    /// Time passes, with every tick that is wanted.
    Pass(u64),
    /// Time passes and the ticks come late.
    Oversleep(u64),
    Places(usize),
}

fn any_do() -> impl Strategy<Value = Do> {
    let n = 0..8_usize;
    prop_oneof![
        4 => (0..4_usize).prop_map(Do::Connect),
        1 => (0..4_usize).prop_map(Do::Reload),
        12 => (0..4_usize).prop_map(Do::Read),
        12 => n.clone().prop_map(Do::Serve),
        6 => (0..4_usize, n.clone()).prop_map(|(plugin, which)| Do::Finish(plugin, which)),
        2 => (0..4_usize, n.clone()).prop_map(|(plugin, which)| Do::Repeat(plugin, which)),
        2 => (0..4_usize, n.clone()).prop_map(|(plugin, which)| Do::Noise(plugin, which)),
        1 => (0..4_usize).prop_map(Do::Bye),
        2 => (0..4_usize).prop_map(Do::Cut),
        3 => n.clone().prop_map(Do::SeeClosed),
        1 => n.clone().prop_map(Do::NotSent),
        10 => (1..4_u64, 0..3_usize, 1..60_000_u64).prop_map(|(place, ask, patience)| Do::Call { place, ask, patience }),
        2 => n.clone().prop_map(Do::Abandon),
        8 => proptest::bool::weighted(0.9).prop_map(Do::Answer),
        1 => Just(Do::Patch),
        3 => (1..6_000_u64).prop_map(Do::Pass),
        1 => (1..40_000_u64).prop_map(Do::Pass),
        1 => (1..40_000_u64).prop_map(Do::Oversleep),
        1 => (0..4_usize).prop_map(Do::Places),
    ]
}

/// What belongs together, so that random orders get far: most of the time one thing.
fn any_scene() -> impl Strategy<Value = Vec<Do>> {
    let plugin = 0..4_usize;
    prop_oneof![
        10 => any_do().prop_map(|one| vec![one]),
        1 => plugin.clone().prop_map(connects),
        1 => (plugin.clone(), 0..3_usize).prop_map(|(plugin, ask)| works(plugin, ask)),
        1 => (plugin, 1..16_000_u64).prop_map(|(plugin, away)| is_away(plugin, away)),
    ]
}

/// A hello that gets through, with its welcome and the tree.
fn connects(plugin: usize) -> Vec<Do> {
    let mut steps = vec![Do::Connect(plugin)];
    steps.extend((0..4).map(|_| Do::Serve(0)));
    steps.extend([Do::Read(plugin), Do::Answer(true), Do::Answer(true)]);
    steps
}

/// A call that reaches its plugin and may come back.
fn works(plugin: usize, ask: usize) -> Vec<Do> {
    let place = [1, 2, 1, 3][plugin];
    let call = Do::Call { place, ask, patience: 50_000 };
    vec![call, Do::Answer(true), Do::Read(plugin), Do::Read(plugin), Do::Finish(plugin, 0), Do::Serve(0)]
}

/// A link that is lost for a while.
fn is_away(plugin: usize, time: u64) -> Vec<Do> {
    let seen = (0..4).map(Do::SeeClosed);
    [Do::Cut(plugin)].into_iter().chain(seen).chain([Do::Pass(time)]).chain(connects(plugin)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn c61_whatever_happens_each_caller_is_settled_once_and_no_request_runs_twice(
        scenes in vec(any_scene(), 1..80),
    ) {
        let mut world = World::new();
        for step in scenes.into_iter().flatten() {
            world.step(step);
        }
        world.end();
    }
}

#[test]
fn the_model_gets_calls_and_syncs_through() {
    let mut world = World::new();
    for step in [0, 1, 3].into_iter().flat_map(connects) {
        world.step(step);
    }
    for (plugin, place) in [(0, 1), (1, 2), (3, 3)] {
        for ask in 0..3 {
            world.step(Do::Call { place, ask, patience: 20_000 });
            // A sync takes two requests and two answers of the serve session.
            for _ in 0..8 {
                for step in [Do::Answer(true), Do::Read(plugin), Do::Finish(plugin, 0), Do::Serve(0)] {
                    world.step(step);
                }
            }
        }
    }
    world.end();
    assert_eq!(world.successes(), 8, "all but the sync of the level-0 plugin");
}
