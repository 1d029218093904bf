// The live page: one WebSocket with a snapshot and then every change, drawn as
// a floor plan, a logic analyser, infrared waveforms, sensors and a log.

import { door as drawDoor, h, Scope, sparkline, waveform } from "./draw.js";
import { applyWords, deviceName, toggleLanguage, word } from "./words.js";

/** @type {(id: string) => any} */
const $ = (id) => document.getElementById(id);
const scope = new Scope($("scope"), 60_000);
const branches = new Map(); // name → {state, actuations, log, history}
const views = { doors: new Map(), units: new Map(), sensors: new Map() };
let current = new URLSearchParams(location.search).get("branch");
let clock = 0; // simulator's clock minus ours, ms

// The faults of a whole branch, and the number that some of them need.
const WHOLE = new Map(
  Object.entries({
    "network-cut": null,
    "network-lag": { field: "delayMs", unit: "ms", value: 300, min: 1, max: 60_000, times: 1 },
    loss: { field: "percent", unit: "%", value: 20, min: 1, max: 100, times: 1 },
    reorder: { field: "delayMs", unit: "ms", value: 500, min: 1, max: 60_000, times: 1 },
    duplicate: null,
    "clock-step": { field: "seconds", unit: "h", value: 1, min: -876_000, max: 876_000, times: 3600 },
    clock: { field: "offsetMs", unit: "h", value: -1, min: -876_000, max: 876_000, times: 3_600_000 },
    "power-off": null,
    reboot: null,
    clone: null,
  }),
);
const DOOR = ["stuck", "relay-dead", "slow", "lost-chip", "sense-open"];
const UNIT = ["ir-dead", "ir-loss", "ir-ignore"];

// ---------------------------------------------------------------- requests

async function send(method, path, body) {
  const answer = await fetch(`/sim/branches${path}`, {
    method,
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error);
  return value;
}

/** Asks something of the branch that is shown. */
async function ask(method, path, body) {
  try {
    return await send(method, `/${encodeURIComponent(current)}${path}`, body);
  } catch (err) {
    note(current, "bad", `${word("failed")}: ${err.message}`);
    return null;
  }
}

const doorPath = (device, what) => `/doors/${encodeURIComponent(device)}/${what}`;
const fault = (kind, device, numbers = {}) => ask("PUT", "/faults", { kind, device: device || undefined, ...numbers });
const clearFault = (f) => ask("DELETE", `/faults?${new URLSearchParams({ kind: f.kind, device: f.device ?? "" })}`);

// ---------------------------------------------------------------- the feed

function connect(delay = 250) {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/sim/ws`);
  let last = null;
  socket.onmessage = (event) => {
    const m = JSON.parse(event.data);
    if (m.type === "snapshot") {
      clock = Date.parse(m.at) - Date.now();
      start(m.branches);
      setLive(true);
      delay = 250;
    } else if (m.seq !== last + 1) {
      socket.close(); // something was missed: begin again from a snapshot
      return;
    } else {
      take(m);
    }
    last = m.seq;
  };
  socket.onclose = () => {
    setLive(false);
    setTimeout(() => connect(Math.min(delay * 2, 5000)), delay);
  };
}

function setLive(live) {
  $("live").textContent = word(live ? "live" : "reconnecting");
  $("live").classList.toggle("off", !live);
}

function start(list) {
  for (const { actuations, ...state } of list) {
    const old = branches.get(state.branch);
    const history = new Map(state.sensors.map((s) => [s.location, old?.history.get(s.location) ?? [s.thermometer]]));
    branches.set(state.branch, {
      state,
      actuations: actuations.map(span),
      log: old?.log ?? [],
      history,
      playedFrom: performance.now(),
    });
    if (!old) for (const a of actuations) if (!a.energized) noteReleased(state.branch, a, a.at);
  }
  if (!branches.has(current)) current = branches.keys().next().value;
  build();
}

/** An actuation as the scope wants it. */
function span(a) {
  const begin = Date.parse(a.at);
  return {
    key: `${a.device} ${a.at}`,
    device: a.device,
    requestId: a.requestId,
    start: begin,
    end: a.energized ? undefined : begin + a.energizedMs,
  };
}

const put = (rows, key, row) => {
  const i = rows.findIndex((r) => r[key] === row[key]);
  const before = rows[i];
  if (i >= 0) rows[i] = row;
  else rows.push(row);
  return before;
};

function take(m) {
  const b = branches.get(m.branch);
  if (!b) return;
  const shown = m.branch === current;
  const tell = (kind, text) => note(m.branch, kind, text, m.at);
  switch (m.type) {
    case "door": {
      const before = put(b.state.doors, "device", m.door);
      if (before && before.open !== m.door.open)
        tell("door", `${deviceName(m.door.device)} · ${word(m.door.open ? "leafOpened" : "leafClosed")}`);
      if (before && !before.exit && m.door.exit) tell("door", `${deviceName(m.door.device)} · ${word("exitPressed")}`);
      if (shown) showDoor(m.door);
      break;
    }
    case "actuation": {
      const a = span(m.actuation);
      const before = put(b.actuations, "key", a);
      if (b.actuations.length > 200) b.actuations.shift();
      const id = a.requestId ? a.requestId.slice(0, 8) : word("noRequest");
      if (!before) tell(a.requestId ? "relay" : "bad", `${deviceName(a.device)} · ${word("energized")} · ${id}`);
      else if (a.end && !before.end) noteReleased(m.branch, m.actuation, m.at);
      break;
    }
    case "airConditioner": {
      put(b.state.airConditioners, "name", m.airConditioner);
      const s = m.airConditioner.signal;
      if (s)
        tell(s.protocol ? "ir" : "bad", `${m.airConditioner.name} · ${word("heard")} · ${word(s.protocol || "noise")}`);
      if (shown) showUnit(m.airConditioner);
      break;
    }
    case "sensor": {
      put(b.state.sensors, "location", m.sensor);
      const values = b.history.get(m.sensor.location);
      values.push(m.sensor.thermometer);
      if (values.length > 120) values.shift();
      if (shown) showSensor(m.sensor);
      break;
    }
    case "keypad":
      tell(
        "door",
        `${deviceName(m.keypad.device)} · ${word("keypad")} · ${word(m.keypad.right ? "entryRight" : "entryWrong")}`,
      );
      break;
    case "tape":
      Object.assign(b.state, m.tape);
      b.playedFrom = performance.now();
      if (shown) showTape();
      break;
    case "presence": {
      const was = b.state;
      if (was.online !== m.presence.online)
        tell(m.presence.online ? "good" : "bad", word(m.presence.online ? "online" : "offline"));
      if (JSON.stringify(was.faults) !== JSON.stringify(m.presence.faults)) {
        const list = m.presence.faults.map((f) => word(f.kind) + (f.device ? ` ${deviceName(f.device)}` : ""));
        tell("fault", list.length ? `${word("faultsNow")}: ${list.join(", ")}` : word("noFaults"));
      }
      Object.assign(was, m.presence);
      showTabs();
      if (shown) showFaults();
      break;
    }
    case "message": {
      const x = m.message;
      const rest = [x.devices?.map(deviceName).join(", "), x.outcome, x.requestId?.slice(0, 8)]
        .filter(Boolean)
        .join(" · ");
      tell(x.fromAgent ? "up" : "down", `${x.kind}${rest ? ` · ${rest}` : ""}`);
    }
  }
}

// ---------------------------------------------------------------- building

function build() {
  $("empty").hidden = true;
  $("branch").hidden = false;
  applyWords();
  const b = branches.get(current).state;
  showTabs();
  buildPlan(b);
  scope.build(b.doors, deviceName);
  buildUnits(b);
  buildSensors(b);
  buildFaults(b);
  b.doors.forEach(showDoor);
  b.airConditioners.forEach(showUnit);
  b.sensors.forEach(showSensor);
  showFaults();
  buildTape();
  showLog();
}

function showTabs() {
  // A fleet has more branches than a row has room for; the address names any.
  $("tabs").replaceChildren(
    ...[...branches.values()].slice(0, 12).map(({ state: s }) =>
      h(
        "button.tab",
        {
          type: "button",
          role: "tab",
          "aria-selected": String(s.branch === current),
          click: () => {
            current = s.branch;
            history.replaceState(null, "", `?branch=${s.branch}`);
            build();
          },
        },
        h(`i.dot.${s.online ? "on" : "off"}`),
        s.branch,
        h("small", {}, word(!s.powered ? "poweredOff" : s.online ? "online" : "offline")),
      ),
    ),
  );
}

function buildPlan(b) {
  views.doors.clear();
  const tile = (d) => {
    const state = h("span.state"),
      count = h("span.count"),
      climate = h("span.climate");
    const leaf = h("button.small", {
      type: "button",
      click: () => ask("POST", doorPath(d.device, "contact"), { open: !row(d.device).open }),
    });
    const view = h(
      `div.tile.${d.kind}`,
      {},
      h("div.name", {}, deviceName(d.device), h("small", {}, `GPIO${d.pin}`)),
      drawDoor(deviceName(d.device)),
      h("div.facts", {}, state, count, climate),
      h(
        "div.actions",
        {},
        leaf,
        h("button.small", { type: "button", click: () => ask("POST", doorPath(d.device, "exit")) }, word("exit")),
        h("button.small", { type: "button", click: () => openKeypad(d.device) }, word("keypad")),
      ),
    );
    views.doors.set(d.device, { view, state, count, climate, leaf });
    return view;
  };
  $("plan").replaceChildren(
    h("div.row", {}, ...b.doors.filter((d) => d.kind === "room").map(tile)),
    h("div.corridor", { "aria-hidden": "true" }),
    h("div.row", {}, ...b.doors.filter((d) => d.kind === "front").map(tile)),
  );
}

const row = (device) => branches.get(current).state.doors.find((d) => d.device === device);

function showDoor(d) {
  const v = views.doors.get(d.device);
  v.view.classList.toggle("energized", !d.locked);
  v.view.classList.toggle("released", d.released);
  v.view.classList.toggle("open", d.open);
  v.view.classList.toggle("exit", d.exit);
  v.state.textContent = [
    word(d.locked ? "locked" : "unlocked"),
    d.released && word("released"),
    d.open && word("stuckOpen"),
  ]
    .filter(Boolean)
    .join(" · ");
  v.count.textContent = `${d.actuations}${word("times")}`;
  v.leaf.textContent = word(d.open ? "closeLeaf" : "openLeaf");
}

function buildUnits(b) {
  views.units.clear();
  $("units").replaceChildren(
    ...b.airConditioners.map((u) => {
      const v = { display: h("div.display"), power: h("span.power"), wave: h("div.wave"), code: h("div.code") };
      views.units.set(u.name, v);
      return h(
        "div.unit",
        {},
        h(
          "div.body",
          {},
          h("div.unit-name", {}, u.name, v.power),
          v.display,
          h("div.louvre", { "aria-hidden": "true" }),
        ),
        h("div.signal", {}, v.code, v.wave),
      );
    }),
  );
}

function showUnit(u) {
  const v = views.units.get(u.name);
  v.display.closest(".unit").classList.toggle("on", u.power);
  v.display.closest(".unit").classList.toggle("swing", u.power && u.direction === "회전");
  v.power.textContent = word(u.power ? "powerOn" : "powerOffUnit");
  v.display.replaceChildren(
    h("b", {}, u.power && u.temperature ? `${u.temperature}°` : "--"),
    h(
      "span",
      {},
      [u.mode && word(u.mode), u.fan && `${word("wind")} ${word(u.fan)}`, u.direction && word(u.direction)]
        .filter(Boolean)
        .join(" · "),
    ),
  );
  const s = u.signal;
  v.code.textContent = s
    ? `${word(s.protocol || "noise")} · ${(s.carrierHz / 1000).toFixed(1)} kHz · ${s.durations.length} ${word("edges")} · ${word("frames")} ${u.frames}`
    : word("never");
  v.wave.replaceChildren(...(s ? waveform(s.durations) : []));
}

function buildSensors(b) {
  views.sensors.clear();
  $("sensors").replaceChildren(
    ...b.sensors.map((s) => {
      const set = (body) => ask("POST", `/sensors/${encodeURIComponent(s.location)}`, body);
      const t = h("input", {
        type: "range",
        min: 10,
        max: 40,
        step: 0.1,
        "aria-label": word("temperature"),
        change: (e) => set({ thermometer: e.target.valueAsNumber }),
      });
      const rh = h("input", {
        type: "range",
        min: 10,
        max: 95,
        step: 0.5,
        "aria-label": word("humidity"),
        change: (e) => set({ hygrometer: e.target.valueAsNumber }),
      });
      const v = {
        t,
        rh,
        tText: h("b"),
        rhText: h("b"),
        spark: h("div"),
        held: h("button.small", { type: "button", click: () => set({ held: !find(s.location).held }) }),
      };
      views.sensors.set(s.location, v);
      return h(
        "div.sensor",
        {},
        h("div.name", {}, s.location, h("small", {}, s.kind.toUpperCase())),
        v.spark,
        h("label", {}, word("temperature"), t, v.tText),
        h("label", {}, word("humidity"), rh, v.rhText),
        v.held,
      );
    }),
  );
}

const find = (location) => branches.get(current).state.sensors.find((s) => s.location === location);

function showSensor(s) {
  const v = views.sensors.get(s.location);
  v.tText.textContent = `${s.thermometer.toFixed(1)} °C`;
  v.rhText.textContent = `${s.hygrometer.toFixed(1)} %`;
  if (!v.t.matches(":active")) v.t.value = s.thermometer;
  if (!v.rh.matches(":active")) v.rh.value = s.hygrometer;
  v.held.textContent = word(s.held ? "held" : "drifting");
  v.held.setAttribute("aria-pressed", String(s.held));
  v.spark.replaceChildren(sparkline(branches.get(current).history.get(s.location)));
  const number = s.location.match(/^(\d+)/)?.[1];
  const tile = views.doors.get(`room_${number}`);
  if (tile) tile.climate.textContent = `${s.thermometer.toFixed(1)}° ${Math.round(s.hygrometer)}%`;
}

// ------------------------------------------------------------------ faults

function buildFaults(b) {
  const option = (value, text) => h("option", { value }, text);
  $("fault-kind").replaceChildren(...[...DOOR, ...UNIT, "sensor-dead", "window-open"].map((k) => option(k, word(k))));
  $("fault-kind").setAttribute("aria-label", word("faults"));
  $("fault-device").setAttribute("aria-label", word("everyDevice"));
  const devices = () => {
    const kind = $("fault-kind").value;
    const list = DOOR.includes(kind)
      ? [["front", word("frontDoors")], ...b.doors.map((d) => [d.device, deviceName(d.device)])]
      : UNIT.includes(kind)
        ? b.airConditioners.map((u) => [u.name, u.name])
        : b.sensors.map((s) => [s.location, s.location]);
    $("fault-device").replaceChildren(option("", word("everyDevice")), ...list.map(([v, t]) => option(v, t)));
    $("fault-delay").closest("label").hidden = kind !== "slow";
  };
  $("fault-kind").onchange = devices;
  devices();
  $("switches").replaceChildren(
    ...[...WHOLE].map(([kind, n]) => {
      const input =
        n &&
        h("input", {
          type: "number",
          min: n.min,
          max: n.max,
          value: n.value,
          "aria-label": `${word(kind)}, ${n.unit}`,
        });
      const toggle = h(
        "button.switch",
        {
          type: "button",
          role: "switch",
          "data-kind": kind,
          click: () =>
            isOn(kind)
              ? clearFault({ kind })
              : fault(
                  kind,
                  "",
                  kind === "reboot"
                    ? { hardwareClock: true }
                    : n
                      ? { [n.field]: Math.round(input.valueAsNumber * n.times) }
                      : {},
                ),
        },
        h("i"),
        word(kind),
      );
      return h("div", {}, toggle, n && h("label.delay", {}, input, ` ${n.unit}`));
    }),
  );
}

const faults = () => branches.get(current).state.faults;
const isOn = (kind) => faults().some((f) => f.kind === kind);

function showFaults() {
  for (const el of $("switches").querySelectorAll(".switch"))
    el.setAttribute("aria-checked", String(isOn(el.dataset.kind)));
  $("chips").replaceChildren(
    ...faults()
      .filter((f) => !WHOLE.has(f.kind))
      .map((f) =>
        h(
          "li",
          {},
          h(
            "button.chip",
            { type: "button", title: word("clearAll"), click: () => clearFault(f) },
            `${word(f.kind)}${f.delayMs ? ` ${f.delayMs} ms` : ""} · ${f.device ? deviceName(f.device) : word("everyDevice")} ✕`,
          ),
        ),
      ),
  );
  $("branch").classList.toggle("dark", isOn("power-off"));
}

// ------------------------------------------------------- tapes, scenarios

async function buildTape() {
  const { scenarios } = (await ask("GET", "/scenarios")) ?? { scenarios: {} };
  $("scenario").replaceChildren(
    ...Object.entries(scenarios).map(([name, tape]) => h("option", { value: name }, titleOf(tape))),
  );
  $("scenario").setAttribute("aria-label", word("scenarios"));
  $("speed").setAttribute("aria-label", word("speed"));
  $("play").disabled = !$("scenario").options.length;
  showTape();
}

const titleOf = (tape) => tape.title?.[document.documentElement.lang] ?? word("recordingTitle");
const replay = (body) => ask("PUT", "/replay", { ...body, speed: Number($("speed").value) });

function showTape() {
  const { recording, replay: playing } = branches.get(current).state;
  $("record").setAttribute("aria-pressed", String(Boolean(recording)));
  $("record").textContent = word(recording ? "endRecording" : "record");
  $("stop").hidden = $("played").hidden = !playing;
  if (playing) $("tape-title").textContent = `${titleOf(playing)} · ×${playing.speed}`;
  else $("tape-title").textContent = word(recording ? "recordingNow" : "tapeHint");
  moveTape();
}

/** Lets the bar of a replay move on between the simulator's words about it. */
function moveTape() {
  const b = branches.get(current),
    playing = b?.state.replay;
  if (!playing) return;
  $("played").max = playing.lengthMs;
  $("played").value = Math.min(playing.lengthMs, playing.atMs + (performance.now() - b.playedFrom) * playing.speed);
}

$("record").addEventListener("click", async () => {
  if (!branches.get(current).state.recording) return ask("PUT", "/recording");
  const name = current,
    tape = await ask("DELETE", "/recording");
  if (!tape) return;
  const link = h("a", {
    href: URL.createObjectURL(new Blob([JSON.stringify(tape)], { type: "application/json" })),
    download: `${name}.json`,
  });
  link.click();
  URL.revokeObjectURL(link.href);
});
$("play").addEventListener("click", () => replay({ scenario: $("scenario").value }));
$("stop").addEventListener("click", () => ask("DELETE", "/replay"));
$("load").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", async () => {
  const [file] = $("file").files;
  $("file").value = "";
  try {
    if (file) await replay({ tape: JSON.parse(await file.text()) });
  } catch (err) {
    note(current, "bad", `${word("failed")}: ${err.message}`);
  }
});

// --------------------------------------------------------------------- log

function note(name, kind, text, at) {
  const b = branches.get(name);
  if (!b) return;
  const time = at ? new Date(at) : new Date(Date.now() + clock);
  const line = {
    kind,
    text,
    time: time.toTimeString().slice(0, 8) + "." + String(time.getMilliseconds()).padStart(3, "0"),
  };
  b.log.unshift(line);
  b.log.length = Math.min(b.log.length, 500);
  if (name === current && fits(line)) {
    $("log").prepend(logLine(line));
    if ($("log").children.length > 500) $("log").lastChild.remove();
  }
}

const noteReleased = (name, a, at) =>
  note(
    name,
    "relay",
    `${deviceName(a.device)} · ${word("energizedFor")} · ${a.energizedMs} ms · ${a.requestId.slice(0, 8) || word("noRequest")}`,
    at,
  );

const arrows = { up: "↑", down: "↓", relay: "⚡", ir: "◉", door: "▯", good: "●", bad: "!", fault: "⚠" };
const fits = (line) => line.text.toLowerCase().includes($("filter").value.toLowerCase());
const logLine = (l) => h(`li.${l.kind}`, {}, h("time", {}, l.time), h("i", {}, arrows[l.kind]), h("span", {}, l.text));
const showLog = () => {
  $("filter").placeholder = word("filterLog");
  $("filter").setAttribute("aria-label", word("filterLog"));
  $("log").replaceChildren(...branches.get(current).log.filter(fits).map(logLine));
};

// ------------------------------------------------------------------ keypad

function openKeypad(device) {
  const digits = $("keypad-digits"),
    answer = $("keypad-answer");
  $("keypad-title").textContent = `${deviceName(device)} · ${word("keypad")}`;
  digits.textContent = answer.textContent = "";
  const press = async (key) => {
    answer.textContent = "";
    if (key === "C") digits.textContent = "";
    else if (key !== "#") digits.textContent = (digits.textContent + key).slice(0, 12);
    else {
      const result = await ask("POST", `/keypads/${encodeURIComponent(device)}`, { digits: `${digits.textContent}#` });
      digits.textContent = "";
      if (result)
        answer.textContent = result.accepted ? word("keypadRight") : `${word("keypadWrong")} (${result.reason})`;
    }
  };
  $("keypad-keys").replaceChildren(
    ..."123456789C0#".split("").map((k) => h("button", { type: "button", click: () => press(k) }, k)),
  );
  $("keypad").showModal();
}

// ----------------------------------------------------------------- new Pi

/** Enrols a simulated Pi and shows its branch, with a new snapshot. */
async function enroll() {
  $("enrol-do").disabled = true;
  $("enrol-answer").textContent = "";
  try {
    const { branch } = await send("POST", "", {
      command: $("enrol-command").value,
      rooms: $("enrol-rooms").valueAsNumber,
    });
    location.search = `?branch=${branch}`;
  } catch (err) {
    $("enrol-answer").textContent = `${word("failed")}: ${err.message}`;
  } finally {
    $("enrol-do").disabled = false;
  }
}

$("enroll").addEventListener("click", () => $("new-pi").showModal());
$("enrol-do").addEventListener("click", enroll);

// ------------------------------------------------------------------- start

$("clear").addEventListener("click", () => ask("DELETE", "/faults"));
$("filter").addEventListener("input", showLog);
$("language").addEventListener("click", () => {
  toggleLanguage();
  setLanguageButton();
  if (branches.size) build();
});
$("device-fault").addEventListener("submit", (e) => {
  e.preventDefault();
  const kind = $("fault-kind").value;
  const numbers =
    kind === "slow" ? { delayMs: $("fault-delay").valueAsNumber } : kind === "ir-loss" ? { percent: 20 } : {};
  fault(kind, $("fault-device").value, numbers);
});
const setLanguageButton = () => {
  $("language").textContent = word("language");
};

function frame() {
  const b = branches.get(current);
  if (b) scope.draw(b.actuations, Date.now() + clock);
  moveTape();
  setTimeout(() => requestAnimationFrame(frame), 80);
}

applyWords();
setLanguageButton();
setLive(false);
connect();
frame();
