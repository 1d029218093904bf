// The stage: buttons that play scenes, and frames that show the service, the sandbox and the simulator.

const words = {
  ko: {
    title: "열다 무대",
    scenes: "장면",
    story: "이야기",
    hint: "위의 장면을 하나 누르면 실제 서비스에서 펼쳐져요. 그 사이에도 모든 화면을 직접 누를 수 있어요.",
    phone: "손님의 휴대폰",
    console: "관리자 콘솔",
    login: "로그인",
    messages: "메시지",
    plan: "지점 도면",
    language: "English",
    open: "예약하고 열기",
    stuck: "걸린 잠금장치",
    offline: "끊긴 지점",
    deposit: "늦은 입금",
    move: "옮겨진 예약",
    race: "두 손님, 한 시간",
    busy: "다른 장면이 끝난 다음에 눌러 주세요.",
    lost: "시뮬레이터에 연결할 수 없어요.",
  },
  en: {
    title: "Yeolda on stage",
    scenes: "Scenes",
    story: "Story",
    hint: "Press a scene above: it plays on the running service. You can use every frame meanwhile.",
    phone: "The guest's phone",
    console: "Console",
    login: "Log in",
    messages: "Messages",
    plan: "Floor plan",
    language: "한국어",
    open: "Buy and open",
    stuck: "A stuck lock",
    offline: "A branch goes offline",
    deposit: "A late deposit",
    move: "Moved under the guest",
    race: "Two buyers, one slot",
    busy: "Another scene is being played.",
    lost: "The simulator cannot be reached.",
  },
};
const names = ["open", "stuck", "offline", "deposit", "move", "race"];

/** @type {"ko" | "en"} */
let language = navigator.language.startsWith("ko") ? "ko" : "en";
/** @type {{ko: string, en: string, failed?: boolean}[]} */
let told = [];
let playing = "";
/** Addresses of the frames before the first scene. @type {Record<string, string>} */
let first = {};

/** @param {string} id */
const find = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
/** @param {string} word */
const text = (word) => words[language][/** @type {keyof typeof words.ko} */ (word)];

function draw() {
  document.documentElement.lang = language;
  document.title = text("title");
  /** @param {string} selector */
  const all = (selector) => /** @type {HTMLElement[]} */ ([...document.querySelectorAll(selector)]);
  for (const e of all("[data-word]")) e.textContent = text(e.dataset.word);
  for (const e of all("[data-label]")) e.setAttribute("aria-label", text(e.dataset.label));
  for (const e of all("[data-frame]")) e.title = text(e.dataset.frame);
  find("language").textContent = text("language");
  find("language").lang = language === "ko" ? "en" : "ko";
  find("scenes").replaceChildren(
    ...names.map((name) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text(name);
      button.disabled = playing !== "";
      button.setAttribute("aria-pressed", String(playing === name));
      button.addEventListener("click", () => void play(name));
      return button;
    }),
  );
  find("hint").hidden = told.length > 0;
  find("steps").replaceChildren(
    ...told.map((step) => {
      const item = document.createElement("li");
      item.textContent = step[language];
      item.classList.toggle("failed", Boolean(step.failed));
      return item;
    }),
  );
  find("story").scrollTop = find("story").scrollHeight;
}

/**
 * Shows addresses in the frames, and waits until they are loaded: a page that is left may still go to another address, and that
 * would undo the next step.
 * @param {Record<string, string>} [frames]
 */
async function show(frames = {}) {
  await Promise.all(
    Object.entries(frames).map(([name, address]) => {
      const frame = /** @type {HTMLIFrameElement} */ (document.querySelector(`[data-frame="${name}"]`));
      const stays = address.includes("#") && address === frame.src; // only goes to its fragment, and loads nothing
      const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
      frame.src = address;
      return stays ? null : loaded;
    }),
  );
}

/** @param {string} problem */
const failed = (problem) => told.push({ ko: words.ko[problem], en: words.en[problem], failed: true });

/** Logs the frame of the console in, unless the page has done so. */
async function login() {
  if (find("login").hidden) return;
  const answer = await fetch("/stage/login", { method: "POST" });
  find("login").hidden = answer.ok;
  if (answer.ok) void show({ console: first.console });
}

/** Plays a scene: the answer is one step a line. @param {string} name */
async function play(name) {
  playing = name;
  told = [];
  draw();
  try {
    await login();
    const answer = await fetch(`/stage/scenes/${name}`, { method: "POST" });
    if (answer.status === 409) failed("busy");
    else if (!answer.ok || !answer.body) failed("lost");
    else {
      let rest = "";
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        const lines = (rest + part.value).split("\n");
        rest = lines.pop() ?? "";
        for (const step of lines.map((line) => JSON.parse(line))) {
          told.push(step);
          draw();
          await show(step.frames);
        }
      }
    }
  } catch {
    failed("lost");
  }
  playing = "";
  draw();
}

find("language").addEventListener("click", () => {
  language = language === "ko" ? "en" : "ko";
  draw();
});
draw();
find("login").addEventListener("click", () => void login());
fetch("/stage/frames")
  .then((answer) => answer.json())
  .then(({ origin, frames }) => {
    // At another address of this machine, such as localhost, the pages would not let the stage show them.
    if (new URL(origin).origin !== location.origin) {
      location.replace(`${origin}/stage`);
      return;
    }
    first = frames;
    void show(first);
  });
