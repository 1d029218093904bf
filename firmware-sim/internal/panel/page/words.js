// Every text of the page, in Korean and in English.

const ko = {
  simulator: "시뮬레이터",
  plan: "지점 도면",
  faults: "고장 스위치",
  clearAll: "모두 해제",
  add: "추가",
  relays: "릴레이 파형",
  lastMinute: "최근 60초",
  log: "이벤트 기록",
  filterLog: "기록에서 찾기",
  airConditioners: "에어컨 (적외선 수신)",
  sensors: "온습도 센서 (I²C)",
  connecting: "시뮬레이터에 연결하고 있어요…",
  live: "실시간",
  reconnecting: "다시 연결하는 중",
  language: "English",
  close: "닫기",
  online: "온라인",
  offline: "오프라인",
  poweredOff: "전원 꺼짐",
  front: "현관",
  room: "룸",
  locked: "잠김",
  unlocked: "열림 신호",
  released: "걸쇠 풀림",
  stuckOpen: "문 열림",
  openLeaf: "문 밀기",
  closeLeaf: "문 닫기",
  exit: "퇴실",
  keypad: "키패드",
  times: "회",
  keypadRight: "맞는 번호예요. 문이 열려요.",
  keypadWrong: "맞지 않는 번호예요.",
  everyDevice: "모든 장치",
  frontDoors: "현관 전체",
  stuck: "걸쇠 걸림",
  "relay-dead": "릴레이 고장",
  slow: "느린 걸쇠",
  "lost-chip": "GPIO 칩 사라짐",
  "sense-open": "감지선만 열림",
  "sensor-dead": "센서 무응답",
  "ir-dead": "적외선 고장",
  "network-cut": "네트워크 단절",
  "network-lag": "네트워크 지연",
  loss: "메시지 유실",
  reorder: "순서 뒤바뀜",
  duplicate: "중복 전달",
  clock: "시계 어긋남",
  "clock-step": "시계 설정",
  "power-off": "전원 차단",
  reboot: "다시 시작",
  clone: "복제된 SD 카드",
  tapes: "녹화와 시나리오",
  scenarios: "시나리오",
  speed: "빠르기",
  play: "재생",
  stop: "멈춤",
  load: "녹화 파일 열기",
  record: "녹화",
  endRecording: "녹화 끝내고 받기",
  recordingNow: "녹화하고 있어요",
  recordingTitle: "녹화한 내용",
  tapeHint: "센서, 문, 키패드, 리모컨, 고장을 그대로 되풀이해요",
  entryRight: "맞는 번호",
  entryWrong: "틀린 번호",
  powerOn: "운전 중",
  powerOffUnit: "꺼짐",
  never: "아직 받은 신호 없음",
  noise: "해독할 수 없는 신호",
  raw: "코드표 일치",
  wind: "바람",
  frames: "받은 신호",
  edges: "구간",
  temperature: "온도",
  humidity: "습도",
  held: "값 고정",
  drifting: "자연 변화",
  energized: "릴레이 켜짐",
  energizedFor: "릴레이 꺼짐",
  noRequest: "요청 없음",
  leafOpened: "문이 열림",
  leafClosed: "문이 닫힘",
  exitPressed: "퇴실 버튼 눌림",
  heard: "적외선 수신",
  faultsNow: "고장",
  noFaults: "고장 없음",
  failed: "실패",
};

const en = {
  simulator: "Simulator",
  plan: "Floor plan",
  faults: "Fault switches",
  clearAll: "Clear all",
  add: "Add",
  relays: "Relay lines",
  lastMinute: "last 60 s",
  log: "Event log",
  filterLog: "Find in the log",
  airConditioners: "Air conditioners (infrared)",
  sensors: "Thermo-hygrometers (I²C)",
  connecting: "Connecting to the simulator…",
  live: "Live",
  reconnecting: "Reconnecting",
  language: "한국어",
  close: "Close",
  online: "online",
  offline: "offline",
  poweredOff: "no power",
  front: "Front",
  room: "Room",
  locked: "Locked",
  unlocked: "Unlocking",
  released: "Bolt back",
  stuckOpen: "Door open",
  openLeaf: "Push door",
  closeLeaf: "Close door",
  exit: "Exit",
  keypad: "Keypad",
  times: "×",
  keypadRight: "Right number. The door opens.",
  keypadWrong: "Wrong number.",
  everyDevice: "every device",
  frontDoors: "all front doors",
  stuck: "stuck bolt",
  "relay-dead": "dead relay",
  slow: "slow bolt",
  "lost-chip": "lost GPIO chip",
  "sense-open": "sense line open",
  "sensor-dead": "dead sensor",
  "ir-dead": "dead infrared",
  "network-cut": "Network cut",
  "network-lag": "Network lag",
  loss: "Messages lost",
  reorder: "Out of order",
  duplicate: "Duplicates",
  clock: "Wrong clock",
  "clock-step": "Clock set",
  "power-off": "Power off",
  reboot: "Restart",
  clone: "Copied SD card",
  tapes: "Recordings and scenarios",
  scenarios: "Scenarios",
  speed: "Speed",
  play: "Play",
  stop: "Stop",
  load: "Open a recording",
  record: "Record",
  endRecording: "End and save",
  recordingNow: "Recording",
  recordingTitle: "Recording",
  tapeHint: "Sensors, doors, keypads, remote controls and faults happen again",
  entryRight: "right number",
  entryWrong: "wrong number",
  powerOn: "Running",
  powerOffUnit: "Off",
  never: "No signal yet",
  noise: "Noise",
  raw: "matched code set",
  wind: "fan",
  // The words of a remote control, which the simulator shows as they are in Korean.
  냉방: "Cool",
  난방: "Heat",
  제습: "Dry",
  송풍: "Fan only",
  자동: "auto",
  최약: "lowest",
  약: "low",
  중: "mid",
  강: "high",
  최강: "max",
  회전: "swing",
  고정: "still",
  frames: "signals",
  edges: "pulses and gaps",
  temperature: "Temperature",
  humidity: "Humidity",
  held: "held",
  drifting: "drifting",
  energized: "relay on",
  energizedFor: "relay off",
  noRequest: "no request",
  leafOpened: "door opened",
  leafClosed: "door closed",
  exitPressed: "exit pressed",
  heard: "infrared",
  faultsNow: "faults",
  noFaults: "no faults",
  failed: "failed",
};

const stored = (() => {
  try {
    return localStorage.getItem("language");
  } catch {
    return null;
  }
})();
let language = stored === "en" || stored === "ko" ? stored : navigator.language.startsWith("ko") ? "ko" : "en";

/** The text of a key; the key itself where there is none, as for a protocol's name. */
export const word = (key) => (language === "ko" ? ko : en)[key] ?? key;

/** room_3 as people call it. */
export function deviceName(device) {
  const [kind, number] = device.split("_");
  if ((kind !== "front" && kind !== "room") || number === undefined) return device;
  if (language === "en") return `${word(kind)} ${number}`;
  return kind === "front" ? `현관 ${number}` : `${number}번 룸`;
}

/** Changes the language and writes it into everything that has a data-word. */
export function toggleLanguage() {
  language = language === "ko" ? "en" : "ko";
  try {
    localStorage.setItem("language", language);
  } catch {
    /* private mode */
  }
  applyWords();
}

export function applyWords() {
  document.documentElement.lang = language;
  /** @type {NodeListOf<HTMLElement>} */
  const texts = document.querySelectorAll("[data-word]");
  for (const el of texts) el.textContent = word(el.dataset.word);
}
