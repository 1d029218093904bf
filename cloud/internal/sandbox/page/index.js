// The page polls what tests see over the same addresses; there is nothing here that they cannot do.

/** @type {(id: string) => any} */
const $ = (id) => document.getElementById(id);
const won = (n) => n.toLocaleString("ko-KR") + "원";
// Korean time, wherever the browser is; sv-SE is the locale that writes 2026-11-21 15:04:05.
const seoul = (t) => new Date(t).toLocaleString("sv-SE", { timeZone: "Asia/Seoul" });
const clock = (t) => seoul(t).slice(11);
const minute = (t) => seoul(t).slice(5, 16);
const span = (a, b) => minute(a) + " – " + minute(b).slice(6);

/** Builds an element; children are elements or text, never markup. */
function el(tag, props, ...children) {
  const e = Object.assign(document.createElement(tag), props);
  e.append(...children.filter((c) => c !== null && c !== undefined && c !== ""));
  return e;
}

function notice(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

async function call(method, path, body) {
  const answer = await fetch(path, { method, body: body && JSON.stringify(body) });
  const data = await answer.json();
  if (!answer.ok) throw new Error(data.message || String(answer.status));
  return data;
}

/** Does something the person asked for and shows the result. */
async function act(method, path, body) {
  try {
    await call(method, path, body);
    notice("");
  } catch (e) {
    notice(e.message);
  }
  await refresh();
}

const button = (text, run, quiet) =>
  el("button", { type: "button", className: "small" + (quiet ? " quiet" : ""), onclick: run }, text);

const statuses = {
  READY: ["위젯 열림", "wait"],
  IN_PROGRESS: ["인증됨, 승인 대기", "wait"],
  WAITING_FOR_DEPOSIT: ["입금 대기", "wait"],
  DONE: ["결제 완료", "good"],
  CANCELED: ["취소됨", ""],
  PARTIAL_CANCELED: ["부분 취소", ""],
  ABORTED: ["거절됨", "bad"],
  EXPIRED: ["만료됨", ""],
};

function payment(p) {
  const [text, tone] = statuses[p.status] || [p.status, ""];
  const account = p.virtualAccount;
  const key = "/sandbox/payments/" + encodeURIComponent(p.paymentKey);
  const actions = el("div", { className: "actions" });
  if (p.status === "READY") {
    for (const method of ["카드", "간편결제", "가상계좌", "휴대폰"])
      actions.append(button(method + "로 결제", () => act("POST", key + "/authenticate", { method })));
  }
  if (p.status === "READY" || p.status === "IN_PROGRESS")
    actions.append(button("승인 때 거절", () => act("POST", key + "/decline", {}), true));
  if (p.status === "WAITING_FOR_DEPOSIT")
    actions.append(button("입금", () => act("POST", "/sandbox/deposits", { orderId: p.orderId })));
  if (p.status === "DONE" && account)
    actions.append(
      button("은행 입금 취소(반전)", () => act("POST", "/sandbox/reversals", { orderId: p.orderId }), true),
    );
  const details = [
    p.method,
    p.orderName !== p.orderId && p.orderName,
    account && `은행 ${account.bankCode} ${account.accountNumber} · 기한 ${minute(account.dueDate)}`,
    account && account.refundStatus !== "NONE" && "환불 " + account.refundStatus,
    p.cancels && `취소 ${p.cancels.length}건, 잔액 ${won(p.balanceAmount)}`,
    p.failure?.message,
  ];
  return el(
    "article",
    { className: "item" },
    el(
      "header",
      {},
      el("b", {}, won(p.totalAmount)),
      el("span", { className: "badge " + tone }, text),
      el("code", {}, p.orderId),
    ),
    el("small", {}, details.filter(Boolean).join(" · ")),
    actions.childElementCount ? actions : null,
  );
}

const channels = { alimtalk: "알림톡", sms: "문자", mail: "메일" };

function message(m) {
  return el(
    "article",
    { className: "item" },
    el(
      "header",
      {},
      el("span", { className: "badge" }, channels[m.channel] || m.channel),
      el("b", {}, m.to),
      el("small", {}, clock(m.at) + (m.template ? " · " + m.template : "")),
    ),
    m.subject ? el("b", {}, m.subject) : null,
    el("p", { className: "text" }, m.text),
    el(
      "div",
      { className: "actions" },
      ...["code", "doorlockKey"]
        .filter((k) => m.variables[k])
        .map((k) => el("span", { className: "chip" }, k + " " + m.variables[k])),
    ),
  );
}

function booking(b) {
  return el(
    "article",
    { className: "item" },
    el(
      "header",
      {},
      el("b", {}, `${b.branch} ${b.room}번`),
      el("span", { className: "badge" + (b.status === "ACCEPTED" ? " good" : "") }, b.canceled ? "취소됨" : b.status),
      el("small", {}, span(b.start, b.end) + " · " + b.name),
    ),
    b.canceled
      ? null
      : el(
          "div",
          { className: "actions" },
          button("채널에서 취소", () => act("DELETE", "/sandbox/channel/bookings/" + encodeURIComponent(b.id)), true),
        ),
  );
}

const block = (b) =>
  el(
    "article",
    { className: "item" },
    el("header", {}, el("b", {}, `${b.branch} ${b.room}번`), el("small", {}, span(b.start, b.end))),
  );

const fault = (f) =>
  el(
    "article",
    { className: "item" },
    el(
      "header",
      {},
      el("b", {}, f.target),
      el("span", { className: "badge bad" }, f.kind),
      el(
        "small",
        {},
        (f.times < 0 ? "계속" : f.times + "번 남음") +
          (f.code ? " · " + f.code : "") +
          (f.delayMs ? ` · ${f.delayMs}ms` : ""),
      ),
    ),
  );

const row = (c) =>
  el(
    "tr",
    {},
    el("td", {}, clock(c.at)),
    el("td", {}, c.method + " " + c.path),
    el("td", {}, c.orderId),
    el("td", {}, c.idempotencyKey),
    el("td", {}, c.status === 0 ? "끊음" : String(c.status)),
  );

const shown = {};

/** Draws a list again only if it has changed, so that a button under the pointer stays. */
function draw(id, list, make, empty) {
  const text = JSON.stringify(list);
  if (shown[id] === text) return;
  shown[id] = text;
  $(id).replaceChildren(
    ...(list.length ? list.map(make) : [el(id === "call-list" ? "tr" : "p", { className: "empty" }, empty)]),
  );
}

async function refresh() {
  try {
    const to = $("to").value.trim();
    const [ledger, payments, messages, bookings, blocks, faults] = await Promise.all([
      call("GET", "/sandbox/ledger?limit=100"),
      call("GET", "/sandbox/payments?limit=50"),
      call("GET", "/sandbox/messages?limit=50&to=" + encodeURIComponent(to)),
      call("GET", "/sandbox/channel/bookings"),
      call("GET", "/sandbox/channel/blocks"),
      call("GET", "/sandbox/faults"),
    ]);
    $("charged").textContent = won(ledger.charged);
    $("refunded").textContent = won(ledger.refunded);
    $("net").textContent = won(ledger.charged - ledger.refunded);
    draw("call-list", ledger.calls.reverse(), row, "");
    draw("payment-list", payments.payments.reverse(), payment, "아직 결제가 없습니다.");
    draw("message-list", messages.messages.reverse(), message, "아직 메시지가 없습니다.");
    draw("bookings", bookings.bookings.reverse(), booking, "채널 예약이 없습니다.");
    draw("blocks", blocks.blocks, block, "막힌 시간이 없습니다.");
    draw("fault-list", faults.faults, fault, "걸린 고장이 없습니다.");
    $("live").textContent = "";
  } catch {
    $("live").textContent = "샌드박스와 연결이 끊어졌습니다. 다시 연결하는 중입니다.";
  }
}

/** Sends a form when it is submitted; read turns its fields into a body. */
function onSubmit(id, path, read) {
  $(id).addEventListener("submit", (event) => {
    event.preventDefault();
    act("POST", path, read(Object.fromEntries(new FormData(event.target))));
  });
}

const compact = (local) => local.replace(/[^0-9]/g, "");
onSubmit("new-payment", "/sandbox/payments", (f) => ({ ...f, amount: Number(f.amount) }));
onSubmit("new-booking", "/sandbox/channel/bookings", ({ start, end, ...f }) => ({
  ...f,
  room: Number(f.room),
  startDateTime: compact(start),
  endDateTime: compact(end),
}));
onSubmit("new-fault", "/sandbox/faults", (f) => ({ ...f, times: Number(f.times), delayMs: Number(f.delayMs) }));
$("clear-faults").addEventListener("click", () => act("DELETE", "/sandbox/faults"));
$("to").addEventListener("input", refresh);
$("to").value = new URLSearchParams(location.search).get("to") ?? "";

/** Shows the tab that the address names, the payments otherwise. */
function choose() {
  const tabs = /** @type {HTMLAnchorElement[]} */ ([...document.querySelectorAll(".tabs a")]);
  const parts = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-tab]")]);
  const chosen = tabs.find((tab) => tab.hash === location.hash) ?? tabs[0];
  for (const tab of tabs) tab.ariaCurrent = tab === chosen ? "page" : null;
  for (const part of parts) part.hidden = `#${part.dataset.tab}` !== chosen.hash;
}
addEventListener("hashchange", choose);
choose();

refresh();
setInterval(() => {
  if (!document.hidden) refresh();
}, 1500);
