//! Any order of events against plugins that keep to the protocol: whatever happens, each caller is
//! settled once and with its own result, and no plugin runs a request twice.
//!
//! To add a kind of event: a variant of [`Do`], a row of [`ROWS`], an arm of `World::step`.

mod callers;
mod clients;
mod ends;
mod kept;
mod play;
mod plugin;
mod random;
mod reviews;
mod wire;
mod world;

use std::io::Write;

use proptest::{collection::vec, prelude::*};

use random::Random;
use world::World;

/// The place of each plugin, and whether it is ours.
const PLUGINS: [(u64, bool); 6] = [(1, true), (2, true), (1, true), (3, false), (3, false), (1, true)];
/// The one of these that is a play server.
const PLAYS: usize = 5;

/// How many events one run of the tests must bring; the variable asks for more or fewer.
const EVENTS: u64 = 1_000_000;
const EVENTS_VARIABLE: &str = "ROJO_MCP_MODEL_EVENTS";
const SEED_VARIABLE: &str = "ROJO_MCP_MODEL_SEED";

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
    /// A play client comes, or one goes.
    Client(usize),
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
    /// One of a few operations, perhaps again, perhaps with other arguments.
    Change {
        number: usize,
        otherwise: bool,
        patience: u64,
    },
    Abandon(usize),
    /// The serve session answers what it was asked first.
    Answer(bool),
    /// The person at a plugin's screen answers what they are asked.
    Answers(usize, usize),
    /// Somebody else does.
    Elsewhere(usize, usize),
    Patch,
    /// Time passes, with every tick that is wanted.
    Pass(u64),
    /// Time passes and the ticks come late.
    Oversleep(u64),
    /// The machine with the plugins sleeps: time passes for the server alone.
    PluginsSleep(u64),
    /// The machine with the server sleeps: its clock stands still.
    ServerSleeps(u64),
    /// The server process is killed and started again, with so much of what it gave to the store kept;
    /// what it sent may still arrive.
    Crash {
        kept: usize,
        arrives: bool,
    },
    /// The server stops in good order and is started again.
    Restart,
    /// Nothing new happens until all is done.
    Quiet,
    Places(usize),
}

type Row = fn(&mut Random) -> Do;

/// How often each kind comes, and what it picks.
const ROWS: &[(usize, Row)] = &[
    (80, |r| Do::Connect(r.plugin())),
    (20, |r| Do::Reload(r.plugin())),
    (240, |r| Do::Read(r.plugin())),
    (240, |r| Do::Serve(r.below(8))),
    (120, |r| Do::Finish(r.plugin(), r.below(8))),
    (40, |r| Do::Repeat(r.plugin(), r.below(8))),
    (40, |r| Do::Noise(r.plugin(), r.below(8))),
    (40, |r| Do::Client(r.below(8))),
    (20, |r| Do::Bye(r.plugin())),
    (40, |r| Do::Cut(r.plugin())),
    (60, |r| Do::SeeClosed(r.below(8))),
    (20, |r| Do::NotSent(r.below(8))),
    (200, |r| Do::Call { place: r.place(), ask: r.below(14), patience: r.time(60_000) }),
    (80, |r| Do::Change { number: r.below(15), otherwise: r.below(20) == 0, patience: r.time(60_000) }),
    (40, |r| Do::Abandon(r.below(8))),
    (160, |r| Do::Answer(r.below(10) > 0)),
    (40, |r| Do::Answers(r.plugin(), r.below(4))),
    (40, |r| Do::Elsewhere(r.below(3), r.below(6))),
    (20, |_| Do::Patch),
    (60, |r| Do::Pass(r.time(6_000))),
    (20, |r| Do::Pass(r.time(40_000))),
    (20, |r| Do::Oversleep(r.time(40_000))),
    (10, |r| Do::PluginsSleep(r.time(40_000))),
    (10, |r| Do::ServerSleeps(r.time(40_000))),
    (4, |r| Do::Crash { kept: r.below(4), arrives: r.below(2) == 0 }),
    (1, |_| Do::Restart),
    (2, |_| Do::Quiet),
    (20, |r| Do::Places(r.below(4))),
];

fn any_do(random: &mut Random) -> Do {
    let mut pick = random.below(ROWS.iter().map(|(weight, _)| weight).sum());
    for (weight, row) in ROWS {
        if pick < *weight {
            return row(random);
        }
        pick -= weight;
    }
    unreachable!("the pick is below the sum")
}

/// What belongs together, so that random orders get far: most of the time one thing.
fn any_scene(random: &mut Random) -> Vec<Do> {
    match random.below(18) {
        0 => connects(random.plugin()),
        1 => works(random.plugin(), random.below(4)),
        2 => is_away(random.plugin(), random.time(16_000)),
        3 => syncs_at_once(random.plugin()),
        4 => outlasts_its_caller(random.plugin()),
        5 if random.below(4) == 0 => outlasts_its_server(random.plugin()),
        6 => works(PLAYS, 4 + random.below(3)),
        7 => plays(random.below(4)),
        _ => vec![any_do(random)],
    }
}

/// A call that changes something.
fn changes(plugin: usize, patience: u64) -> Do {
    Do::Call { place: PLUGINS[plugin].0, ask: 0, patience }
}

/// Two syncs that get far.
fn syncs_at_once(plugin: usize) -> Vec<Do> {
    let sync = Do::Call { place: PLUGINS[plugin].0, ask: 2, patience: 50_000 };
    let round = [Do::Answer(true), Do::Read(plugin), Do::Read(plugin), Do::Finish(plugin, 0), Do::Serve(0)];
    let rounds = std::iter::repeat_n(round, 5).flatten();
    [sync.clone(), sync].into_iter().chain(rounds).collect()
}

/// A change whose time is up before it ends, and another one that waits for it.
fn outlasts_its_caller(plugin: usize) -> Vec<Do> {
    let mut steps = vec![changes(plugin, 1_000), changes(plugin, 50_000)];
    steps.extend([Do::Read(plugin), Do::Read(plugin), Do::Pass(1_200)]);
    for _ in 0..3 {
        steps.extend([Do::Read(plugin), Do::Serve(0), Do::Serve(1)]);
    }
    steps
}

/// A change that runs while its server is killed, and another one of the next server.
fn outlasts_its_server(plugin: usize) -> Vec<Do> {
    let mut steps = vec![changes(plugin, 50_000), Do::Read(plugin), Do::Read(plugin)];
    steps.push(Do::Crash { kept: 4, arrives: true });
    steps.extend(connects(plugin));
    steps.extend([changes(plugin, 50_000), Do::Read(plugin), Do::Read(plugin), Do::Read(plugin)]);
    steps
}

/// A hello that gets through, with its welcome and the tree.
fn connects(plugin: usize) -> Vec<Do> {
    let mut steps = vec![Do::Connect(plugin)];
    steps.extend((0..4).map(|_| Do::Serve(0)));
    steps.extend([Do::Read(plugin), Do::Answer(true), Do::Answer(true)]);
    steps
}

/// A play test of the first Studio: with a player or without, perhaps stopped or restarted before it is up,
/// and again when it is.
fn plays(how: usize) -> Vec<Do> {
    let does = || [vec![Do::Read(0); 4], vec![Do::Finish(0, 0)], vec![Do::Serve(0); 5]].concat();
    let press = |button: usize| {
        let call = Do::Call { place: 1, ask: 9 + button, patience: 50_000 };
        [vec![call], does()].concat()
    };
    let up = || {
        let attached = [vec![Do::Serve(0); 4], vec![Do::Read(PLAYS); 4]].concat();
        [connects(PLAYS), attached, vec![Do::Finish(PLAYS, 0)], vec![Do::Serve(0); 3]].concat()
    };
    let down = || [vec![Do::Bye(PLAYS)], vec![Do::Serve(0); 4], vec![Do::Reload(PLAYS), Do::SeeClosed(0)]].concat();
    let before = if how >= 2 { press(how % 2 + 2) } else { Vec::new() };
    let after = press(3 - how % 2);
    [connects(0), press(how % 2), before, up(), after, down(), does(), up()].concat()
}

/// A call that reaches its plugin and may come back.
fn works(plugin: usize, ask: usize) -> Vec<Do> {
    let call = Do::Call { place: PLUGINS[plugin].0, ask, patience: 50_000 };
    vec![call, Do::Answer(true), Do::Read(plugin), Do::Read(plugin), Do::Finish(plugin, 0), Do::Serve(0)]
}

/// A link that is lost for a while.
fn is_away(plugin: usize, time: u64) -> Vec<Do> {
    let seen = (0..4).map(Do::SeeClosed);
    [Do::Cut(plugin)].into_iter().chain(seen).chain([Do::Pass(time)]).chain(connects(plugin)).collect()
}

/// One world from its beginning to its end: how many events there were, and calls that came through.
fn live(scenes: impl IntoIterator<Item = Vec<Do>>) -> (u64, usize) {
    let mut world = World::new();
    for step in scenes.into_iter().flatten() {
        world.step(step);
    }
    world.end();
    (world.events(), world.successes())
}

/// Says which world it was when a promise breaks.
struct SayUnlessDone {
    seed: u64,
    done: bool,
}

impl Drop for SayUnlessDone {
    fn drop(&mut self) {
        if !self.done {
            say(&format!("this was the world of seed {}: set {SEED_VARIABLE} to it to see it alone", self.seed));
        }
    }
}

/// Not swallowed when the test passes.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}

#[test]
fn c61_in_a_million_events_each_caller_is_settled_once_and_no_request_runs_twice() {
    let alone = number(SEED_VARIABLE);
    let wanted = if alone.is_some() { 1 } else { number(EVENTS_VARIABLE).unwrap_or(EVENTS) };
    let (mut events, mut successes, mut worlds) = (0, 0, 0);
    while events < wanted {
        let seed = alone.unwrap_or(worlds);
        let mut guard = SayUnlessDone { seed, done: false };
        let mut random = Random::new(seed);
        let length = 1 + random.below(200);
        let (more, through) = live((0..length).map(|_| any_scene(&mut random)));
        events += more;
        successes += through;
        worlds += 1;
        guard.done = true;
    }
    say(&format!("the model took {events} events in {worlds} worlds; {successes} calls came through"));
    assert!(alone.is_some() || successes as u64 > events / 200, "too little happens: {successes} calls came through");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The same, in a form that shrinks.
    #[test]
    fn c61_whatever_happens_each_caller_is_settled_once_and_no_request_runs_twice(
        scenes in vec(any::<u64>(), 1..80),
    ) {
        live(scenes.into_iter().map(|seed| any_scene(&mut Random::new(seed))));
    }
}

#[test]
fn the_model_gets_calls_through_to_a_play_server_and_its_clients() {
    let mut world = World::new();
    for step in [0, PLAYS].into_iter().flat_map(connects) {
        world.step(step);
    }
    for ask in [4, 5, 6] {
        // Its clients are told to it first.
        for step in [vec![Do::Serve(0); 4], vec![Do::Read(PLAYS); 4], works(PLAYS, ask)].into_iter().flatten() {
            world.step(step);
        }
    }
    world.end();
    assert_eq!(world.successes(), 3);
}

#[test]
fn the_model_gets_play_tests_started_restarted_and_stopped() {
    // Started and restarted; started and stopped; stopped before it is up.
    for (how, through) in [(0, 2), (1, 2), (2, 1)] {
        let mut world = World::new();
        for step in plays(how) {
            world.step(step);
        }
        world.end();
        assert!(world.successes() >= through, "{how}: {} calls came through", world.successes());
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
    // A question, and its answer at the screen.
    for step in [Do::Call { place: 1, ask: 7, patience: 20_000 }, Do::Answers(0, 0)] {
        world.step(step);
        for _ in 0..8 {
            for step in [Do::Answer(true), Do::Read(0), Do::Finish(0, 0), Do::Serve(0)] {
                world.step(step);
            }
        }
    }
    world.end();
    assert_eq!(world.successes(), 10, "every call and every sync");
}
