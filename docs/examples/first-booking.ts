// Books a free room of a branch from now on, pays for it in the sandbox and opens its door.
// Needs `make run` and Node 22.18 or later: node docs/examples/first-booking.ts
const site = process.env.YEOLDA_URL ?? "http://127.0.0.1:8080";
const sandbox = process.env.YEOLDA_SANDBOX_URL ?? "http://127.0.0.1:8090";
const branch = "gangnam";
let cookie = ""; // of the hold; after the payment it identifies the purchase

async function send(url: string, body?: object) {
  const headers = { "Content-Type": "application/json", Cookie: cookie };
  const answer = await fetch(url, { method: body ? "POST" : "GET", headers, body: JSON.stringify(body) });
  cookie = answer.headers.getSetCookie()[0]?.split(";")[0] ?? cookie;
  const json = await answer.json();
  if (!answer.ok) throw new Error(`${answer.status} ${json.errorType}: ${json.message}`);
  return json.data ?? json; // the sandbox has no envelope
}

// A time of the interface: YYYYMMDDHHmm, local to the branch.
const local = (ms: number) =>
  new Date(ms).toLocaleString("sv", { timeZone: "Asia/Seoul" }).replace(/\D/g, "").slice(0, 12);
const start = Math.floor(Date.now() / 600_000) * 600_000; // the current ten-minute slot
const [from, until] = [local(start), local(start + 3_600_000)];

const day = `date=${from.replace(/^(....)(..)(..).*/, "$1-$2-$3")}&baseHour=${Number(from.slice(8, 10))}`;
const { rooms, unavailableSlots } = await send(`${site}/api/v2/branches/${branch}/reservations?${day}`);
const taken = JSON.stringify(unavailableSlots); // lists of "room-YYYYMMDDHHmm"
type Room = { roomNo: string; enabled: boolean; pricing: { min60: number | null } };
const room = rooms.find((r: Room) => r.enabled && r.pricing.min60 && !taken.includes(`"${r.roomNo}-`));

await send(`${site}/api/reservation`, { branch, room: Number(room.roomNo), startDateTime: from, endDateTime: until });
const { amount } = await send(`${site}/api/v2/hold`);
const { orderId } = await send(`${site}/api/payment`, { amount, name: "홍길동", mobileNum: "010-1234-5678" });
const { paymentKey } = await send(`${sandbox}/sandbox/payments`, { orderId, amount, method: "카드" }); // in place of the widget
await send(`${site}/api/payment/confirm`, { paymentKey, orderId, amount });
const { doorlockKey } = await send(`${site}/api/v2/receipt`);

const press = JSON.stringify({ branch, doorlockType: "room", key: doorlockKey });
const headers = { "Content-Type": "application/json", Accept: "text/event-stream" };
console.log(await (await fetch(`${site}/api/door/v2/unlock`, { method: "POST", headers, body: press })).text());
