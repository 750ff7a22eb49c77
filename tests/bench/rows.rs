//! Every row of the table: what it measures and what its goal is. The program that measures and the test that reads the
//! README both take the names from here, so a figure that is added, renamed or dropped shows in both.

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Figure {
    /// What is measured.
    pub(crate) name: &'static str,
    /// What it should be; empty where nothing was promised.
    pub(crate) goal: &'static str,
}

macro_rules! figures {
    ($(#[$about:meta])* $list:ident: $($id:ident = $name:literal, $goal:literal;)*) => {
        $(pub(crate) const $id: Figure = Figure { name: $name, goal: $goal };)*

        $(#[$about])*
        pub(crate) const $list: &[Figure] = &[$($id),*];
    };
}

figures! {
    /// The rows of `scripts/bench fleet`, which are a table of their own: they need the fleet's program, and a server.
    FLEET:
    FLEET_SERVER_SHARE = "the server, everybody at rest: share of a core", "< 5 %";
    FLEET_SERVER_MEMORY = "the server, everybody at rest: resident", "";
    FLEET_BRIDGE_SHARE = "a bridge at rest: share of a core", "< 5 %";
    FLEET_BRIDGE_MEMORY = "a bridge: resident", "< 32 MiB";
    FLEET_BRIDGE_WAKES = "a bridge at rest: wake-ups", "";
    FLEET_BRIDGE_LOOKED = "a bridge while somebody looks at all hosts: share of a core", "";
    FLEET_AGENTS = "`tasuki agents --all-hosts`, the whole process, against `tasuki --version`, p50", "< 100 ms";
    FLEET_HOSTS = "`tasuki-fleet hosts`, against `tasuki-fleet --version`, p50", "< 100 ms";
}

figures! {
    /// All other rows, in the order of the table.
    ALL:
    HOOK = "`tasuki hook`, the whole process, against `sh -c 'cat >tmp && mv'`, p50", "≤ 2";
    LATENCY_P50 = "drop of a request → result visible, p50, against inotify + one redb commit + renames", "≤ 1.5";
    LATENCY_P99 = "the same, p99", "≤ 1.5";
    FLOOD = "2,500 requests by 4 writers until the last result, against a bare batch program", "≥ 0.67";
    PANES_1 = "pieces of text into the composer of 1 agent, each seen before the next is typed, against a new `tmux` process for each command", "≥ 20";
    PANES_10 = "the same, 10 agents at once", "≥ 20";
    PANES_100 = "the same, 100 agents at once", "≥ 20";
    HANDOFF = "a handoff of the demo agent until its successor is briefed, against a driver that knows when the agent is ready and proves nothing, p50", "≤ 1.25";
    HANDOFF_EARLY = "the same with `handoff.starting = \"early\"`", "≤ 1.25";
    CROWD = "100 handoffs at once on 100 panes until the last successor is briefed, against one alone plus the processor time of the agents", "≤ 1.5";
    CROWD_SHARE = "the same: the sidecar's share of a core", "";
    CROWD_WAIT = "the same: the longest that another request waits for its answer", "< 50 ms";
    IDLE_MEMORY = "idle, 1,000 registered agents, tmux connected: resident", "< 20 MiB";
    IDLE_WAKES = "idle, 1,000 registered agents, tmux connected: wake-ups", "≥ 5 s apart";
    START = "start with 100,000 finished handoffs until the first answer, CPU time", "< 200 ms";
    FACTS = "facts of a repository of 50,000 files, against `git status --porcelain=v2 --branch`, p50", "≤ 300 ms";
    CHECKED = "a whole handoff of the demo agent in that repository, its document checked and without faults, against one without repository and checks, p50", "≤ +500 ms";
    WORK_CLAIM = "claim of a work item in a home that holds 100,000 items, p50, against inotify + one redb commit + renames", "≤ 1.5";
    WORK_DONE = "completion of a work item, the same", "≤ 1.5";
    WORK_LIST = "`tasuki work list` of 1,000 open items among 100,000, the whole process, p50", "< 50 ms";
    AGENTS = "`tasuki agents`, 200 agents and 2,000 handoffs, against `tasuki --version`, p50", "< 10 ms";
    HANDOFFS = "`tasuki handoffs`, the same", "< 10 ms";
    ERRORS = "`tasuki errors`, the same", "< 10 ms";
    LINEAGE = "`tasuki lineage`, the same", "< 10 ms";
    WORK_LIST_SMALL = "`tasuki work list`, the same", "< 10 ms";
    TOP_SHARE = "`tasuki top`, 200 agents at rest: share of a core", "< 1 %";
    TOP_MEMORY = "`tasuki top`, 200 agents at rest: resident", "< 20 MiB";
    SERVE_P50 = "a request by HTTP → its answer, against a file dropped and synced → its result, p50", "≤ +2 ms";
    SERVE_P99 = "the same, p99", "";
    SERVE_IDLE = "`tasuki serve`, 200 agents, nobody listens: share of a core at rest", "< 1 %";
    SERVE_LISTENERS = "an agent's event dropped → the last of 200 listeners has its line, p50", "";
    SERVE_IDLE_LISTENED = "`tasuki serve`, 200 agents, 200 listen and nothing happens: share of a core", "< 1 %";
    SIZE = "size of the program", "< 10 MiB";
}
