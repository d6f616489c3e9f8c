//! Links: hello or refuse, takeover, the tree, loss and return.

use super::{Bridge, Effect, Link, What, operations::Ran, places::place_not_served};
use crate::core::{
    calls::Moment,
    error::ToolError,
    gathered::Gathered,
    ids::{InstanceId, RequestId},
    live::Edited,
    protocol::{
        AckDisposition, CancelReason, FrameError, HEARTBEAT, HELLO_DEADLINE, Hello, HelloLevel1, Limits,
        MAX_FRAME_BYTES, MAX_PART_BYTES, MAX_PENDING_BYTES, Notice, PROTOCOL, PluginFrame, RejectCode, Role,
        ServerFrame, Welcome,
    },
    standing::Standing,
    studios::{LinkId, MAX_STUDIOS, StudioKey, TreeState},
};

/// What Luau's numbers can count; more was never sent.
const LARGEST_N: u64 = 1 << 53;

const STOPPING: &str = "the server is stopping";

/// A hello that is refused: why, for the plugin and the person at the screen.
pub(super) struct Refusal {
    pub(super) code: RejectCode,
    pub(super) reason: String,
    retry_after: Option<u32>,
}

impl Refusal {
    pub(super) fn new(code: RejectCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), retry_after: None }
    }
}

impl Bridge {
    pub(super) fn frame(&mut self, now: Moment, link: LinkId, frame: Result<PluginFrame, FrameError>) {
        match self.links.get(&link) {
            Some(Link::New { opened_at }) if *opened_at + HELLO_DEADLINE <= now => self.expire_hellos(now),
            Some(Link::New { .. }) => self.first_frame(now, link, frame),
            Some(Link::Of(key)) => {
                let key = *key;
                self.heard(now, link);
                match frame {
                    Ok(frame) => self.studio_frame(now, link, key, frame),
                    Err(error) => self.bad_frame(now, link, key, error),
                }
            }
            Some(Link::Closing) | None => {}
        }
    }

    fn first_frame(&mut self, now: Moment, link: LinkId, frame: Result<PluginFrame, FrameError>) {
        let admitted = match frame {
            Ok(PluginFrame::Hello(hello)) => self.hello(now, link, *hello),
            Ok(_) => Err(Refusal::new(RejectCode::BadHello, "the first frame must be a hello")),
            Err(error) => Err(Refusal::new(RejectCode::BadHello, format!("the hello could not be read: {error}"))),
        };
        if let Err(refusal) = admitted {
            self.refuse(link, refusal);
        }
    }

    pub(super) fn refuse(&mut self, link: LinkId, Refusal { code, reason, retry_after }: Refusal) {
        self.note(format!("refused a Studio: {reason}"));
        self.send(link, ServerFrame::Notice(Notice::Rejected { code, reason: reason.clone(), retry_after }));
        self.close(link, reason);
    }

    pub(super) fn close(&mut self, link: LinkId, reason: impl Into<String>) {
        self.links.insert(link, Link::Closing);
        self.effects.push(Effect::Close { link, reason: reason.into() });
    }

    fn hello(&mut self, now: Moment, link: LinkId, hello: Hello) -> Result<(), Refusal> {
        if !self.places.admits(hello.place_id) {
            return Err(place_not_served(hello.place_id));
        }
        let mut hello = hello;
        let renamed = self.name_copy(&mut hello);
        let key = match &hello.level1 {
            Some(level1) => self.identify(now, link, &hello, level1)?,
            None => None,
        };
        self.expire_calls(now);
        self.make_room(key);
        let key = match key {
            Some(key) => self.come_back(now, link, key, hello),
            None if self.studios.len() >= MAX_STUDIOS => {
                let reason = format!("{MAX_STUDIOS} Studios are linked already");
                return Err(Refusal::new(RejectCode::TooManyStudios, reason));
            }
            None => {
                let next_n = self.known_n(&hello) + 1;
                let key = self.studios.add(hello, link, now, next_n);
                self.recall(key);
                key
            }
        };
        self.links.insert(link, Link::Of(key));
        let name = self.studio_name(key);
        self.note(format!("linked to {name}"));
        self.welcome(link, key, renamed);
        self.show_again(key);
        self.resend(now, key);
        self.probe_older(now, key);
        Ok(())
    }

    /// A Studio that is here comes before one that may come back.
    fn make_room(&mut self, known: Option<StudioKey>) {
        if known.is_some() || self.studios.len() < MAX_STUDIOS {
            return;
        }
        let lost = self.studios.iter().filter_map(|studio| Some((studio.lost_at?, studio.key))).min();
        if let Some((_, key)) = lost {
            self.leave(key, "its link was lost and its place was needed");
        }
    }

    /// The highest request number that this plugin session has received from us, as it says.
    fn known_n(&self, hello: &Hello) -> u64 {
        hello
            .level1
            .as_ref()
            .filter(|level1| level1.server_id.as_ref() == Some(&self.intro.server_id))
            .map_or(0, |level1| level1.last_n.min(LARGEST_N))
    }

    /// Which Studio of the registry a hello belongs to; `None`: a new one.
    fn identify(
        &mut self,
        now: Moment,
        link: LinkId,
        hello: &Hello,
        level1: &HelloLevel1,
    ) -> Result<Option<StudioKey>, Refusal> {
        for (field, id) in [("sessionId", level1.session_id.as_str()), ("instanceId", level1.instance_id.as_str())] {
            if id.is_empty() || id.chars().any(char::is_control) {
                let reason = format!("the hello's `{field}` must be printable and not empty");
                return Err(Refusal::new(RejectCode::BadHello, reason));
            }
        }
        if level1.protocol == 0 {
            let reason = format!(
                "plugin {} speaks protocol 0 and server {} speaks {PROTOCOL}: run `rojo-mcp plugin install` and start Studio again",
                level1.plugin_version, self.intro.server_version
            );
            return Err(Refusal::new(RejectCode::Unsupported, reason));
        }
        let known = self.studios.of_session(&level1.session_id).map(|studio| studio.key);
        let other = self.studios.of_place(&level1.instance_id, level1.role);
        let Some(other) = other.filter(|other| Some(other.key) != known) else { return Ok(known) };
        if !other.may_be_taken_over(now) {
            let (key, session) = (other.key, level1.session_id.clone());
            self.note_rival(now, key, session);
            let reason =
                format!("{} is open in another window that is connected: close one of the two", hello_name(hello));
            return Err(Refusal { code: RejectCode::DuplicateSession, reason, retry_after: Some(1) });
        }
        let key = other.key;
        self.note(format!("{} takes over from a window that fell silent (link {})", hello_name(hello), link.0));
        self.leave(key, "another window of the place took over");
        Ok(known)
    }

    fn come_back(&mut self, now: Moment, link: LinkId, key: StudioKey, hello: Hello) -> StudioKey {
        let place = self.place_of(key);
        let studio = self.studios.said_hello_again(key, hello).expect("identified a moment ago");
        let old = studio.link.replace(link);
        studio.lost_at = None;
        studio.heard_at = now;
        studio.tree = if studio.takes_tree() { TreeState::wanted() } else { TreeState::None };
        studio.clients.doubt();
        studio.gathered = Gathered::default();
        studio.told = Standing::default();
        if let Some(old) = old.filter(|old| *old != link) {
            self.close(old, "the same plugin connected again");
        }
        self.place_moved(key, place);
        key
    }

    fn welcome(&mut self, link: LinkId, key: StudioKey, instance_id: Option<InstanceId>) {
        let Some(studio) = self.studios.get(key) else { return };
        let Some(level1) = &studio.hello.level1 else { return };
        let takes_tree = studio.takes_tree();
        let welcome = Welcome {
            protocol: PROTOCOL.min(level1.protocol),
            server_version: self.intro.server_version.clone(),
            server_id: self.intro.server_id.clone(),
            tree_id: self.intro.tree_id.clone(),
            project: self.intro.project.clone(),
            assigned_role: level1.role,
            instance_id,
            heartbeat_seconds: u32::try_from(HEARTBEAT.as_secs()).expect("a few seconds"),
            limits: Limits {
                max_frame_bytes: MAX_FRAME_BYTES,
                max_part_bytes: MAX_PART_BYTES,
                max_pending_bytes: MAX_PENDING_BYTES,
            },
        };
        self.send(link, ServerFrame::Notice(Notice::Welcome(welcome)));
        if takes_tree {
            self.effects.push(Effect::BuildTree { link });
        }
    }

    /// After a return: send again what provably never arrived, in order; give up what arrived and
    /// is neither running nor done over there; leave the rest waiting. What still runs although
    /// nobody waits for it is cancelled: the first cancel may be lost.
    fn resend(&mut self, now: Moment, key: StudioKey) {
        let Some(studio) = self.studios.get(key) else { return };
        let Some(level1) = studio.hello.level1.clone() else { return };
        let last_n = self.known_n(&studio.hello);
        let is_there = |id: &RequestId| level1.in_flight.contains(id) || level1.pending.contains(id);
        let mut sent: Vec<(u64, RequestId, bool)> = self
            .calls
            .iter()
            .filter(|(_, waiting)| waiting.studio == key)
            .filter_map(|(id, waiting)| match &waiting.what {
                What::Request { request, sent: true, .. } => {
                    Some((request.n.unwrap_or(0), id.clone(), self.is_given_up(waiting)))
                }
                What::Request { .. } | What::Run(_) | What::Review(_) | What::CatchUp(_) | What::Play(..) => None,
            })
            .collect();
        sent.sort_unstable();
        // What ends below lets others have their turn, with higher numbers: so these go first.
        for (_, id, _) in sent.iter().filter(|(n, _, given_up)| *n > last_n && !given_up) {
            self.send_again(now, id);
        }
        for (n, id, given_up) in sent {
            if n > last_n && given_up {
                self.fail(now, &id, ToolError::cancelled(), Ran::Never);
            } else if n <= last_n && !is_there(&id) {
                let error = ToolError::outcome_unknown(&self.studio_name(key), "the plugin lost it with the link");
                self.fail(now, &id, error, Ran::Unknown);
            }
        }
        self.late_never_ran(key, last_n);
        self.lanes.returned(key, |id| level1.in_flight.contains(id));
        self.free_lane(now, key, |id, n| n.is_none_or(|n| n <= last_n) && is_there(id));
        for id in level1.in_flight.iter().filter(|id| self.calls.disposition(id) == AckDisposition::Unknown) {
            self.lanes.occupied(key, id, now);
        }
        for id in &level1.in_flight {
            let open = self.calls.get(id).map(|(waiting, _)| self.is_given_up(waiting));
            if open.unwrap_or(self.calls.disposition(id) == AckDisposition::AlreadySettled) {
                self.cancel(id, key, CancelReason::Aborted);
            }
        }
    }

    fn studio_frame(&mut self, now: Moment, link: LinkId, key: StudioKey, frame: PluginFrame) {
        match frame {
            PluginFrame::Result(result) => {
                let id = result.request_id.clone();
                self.result_came(now, link, key, &id, Ok(result));
            }
            PluginFrame::Cancelled { request_id } => self.cancelled(now, key, &request_id),
            PluginFrame::StillRunning { request_id } => self.lanes.cannot_end(key, &request_id),
            PluginFrame::Alive => self.drop_doubted(now, key),
            PluginFrame::Attach { logical_id, role, player, in_flight } => {
                self.attach(link, key, logical_id.clone(), role, player);
                self.runs_in(now, key, &logical_id, &in_flight);
            }
            PluginFrame::Detach { logical_id } => self.detach(now, key, &logical_id),
            PluginFrame::Taken { request_id: None, part } => self.tree_part_taken(link, key, part),
            PluginFrame::Taken { request_id: Some(id), part } => self.plan_part_taken(link, &id, part),
            PluginFrame::Facts { request_id, part, facts } => self.facts_part(key, request_id, part, facts),
            PluginFrame::TreeReady { tree_id, cursor, parts, facts } => {
                if tree_id == self.intro.tree_id {
                    self.tree_ready(now, link, key, cursor, (parts, facts));
                }
            }
            PluginFrame::Edit { seq, nodes, removed, below } => {
                self.edited((link, key), now, Edited { seq, nodes, deleted: removed, below });
            }
            PluginFrame::Reviewed { review_id, answer } => self.studio_answered(now, key, review_id, &answer),
            PluginFrame::ReviewText { review_id, id } => self.text_wanted(link, key, review_id, id),
            PluginFrame::Progress { request_id, progress, total, message } => {
                self.progress(&request_id, progress, total, message);
            }
            PluginFrame::RobloxLog { message, level, logical_id } => self.printed(key, logical_id, level, message),
            PluginFrame::Bye { reason } => self.leave(key, &reason),
            PluginFrame::Hello(_)
            | PluginFrame::Proof { .. }
            | PluginFrame::Pair { .. }
            | PluginFrame::Unknown { .. } => self.ignored_frames += 1,
        }
    }

    fn bad_frame(&mut self, now: Moment, link: LinkId, key: StudioKey, error: FrameError) {
        let name = self.studio_name(key);
        self.note(format!("a frame of {name} could not be read: {error}"));
        if let Some(id) = error.request_id {
            let error = ToolError::failed(
                format!("the answer of {name} could not be read: {}", error.detail),
                "return plain values: text in UTF-8, finite numbers",
            );
            self.result_came(now, link, key, &id, Err(error));
        }
    }

    pub(super) fn closed(&mut self, now: Moment, link: LinkId, reason: &str) {
        let Some(Link::Of(key)) = self.links.remove(&link) else { return };
        let Some(studio) = self.studios.get_mut(key).filter(|studio| studio.link == Some(link)) else { return };
        studio.link = None;
        if !studio.is_level1() || studio.ending {
            return self.leave(key, &format!("its link closed: {reason}"));
        }
        studio.lost_at = Some(now);
        let name = studio.name.clone();
        self.fail_unsent(key);
        self.note(format!("lost the link to {name}: {reason}"));
    }

    /// A Studio is gone for good: everything it had settles now.
    pub(super) fn leave(&mut self, key: StudioKey, why: &str) {
        self.hand_on_play(key);
        let Some(studio) = self.studios.remove(key) else { return };
        if let Some(link) = studio.link {
            self.close(link, why);
        }
        self.note(format!("{} has left: {why}", studio.name));
        let error = if studio.role() != Role::Edit {
            ToolError::play_ended(&studio.name)
        } else if studio.is_level1() {
            ToolError::studio_left(&studio.name)
        } else {
            ToolError::outcome_unknown(&studio.name, why)
        };
        self.fail_all_of(key, &error);
        self.forget_runs_of(key);
        self.forget_standing(key);
    }

    pub(super) fn opened(&mut self, now: Moment, link: LinkId) {
        self.links.insert(link, Link::New { opened_at: now });
        if self.stopping {
            self.close(link, STOPPING);
        }
    }

    pub(super) fn shutdown(&mut self) {
        self.stopping = true;
        let error = ToolError::shutting_down();
        let keys: Vec<StudioKey> = self.studios.iter().map(|studio| studio.key).collect();
        for key in keys {
            self.cancel_all_of(key);
            self.fail_all_of(key, &error);
            self.forget_runs_of(key);
            let Some(studio) = self.studios.remove(key) else { continue };
            let Some(link) = studio.link else { continue };
            if studio.is_level1() {
                let reason = STOPPING.to_owned();
                self.send(link, ServerFrame::Notice(Notice::Bye { reason }));
            }
            self.close(link, STOPPING);
        }
        self.drop_operations(&error);
        let unlinked: Vec<LinkId> =
            self.links.iter().filter(|(_, link)| matches!(link, Link::New { .. })).map(|(id, _)| *id).collect();
        for link in unlinked {
            self.close(link, STOPPING);
        }
    }
}

fn hello_name(hello: &Hello) -> String {
    match &hello.level1 {
        Some(level1) if !level1.place_name.is_empty() => format!("place {:?}", level1.place_name),
        Some(level1) => level1.instance_id.to_string(),
        None => format!("place {}", hello.place_id),
    }
}
