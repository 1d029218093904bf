// The customers' site: all screens and their addresses. The server lists the addresses too (shell.go).

import "./locales/ko"; // first: the compression finds more in code that no long table divides
import { dropCarried } from "./core/carried";
import { language } from "./core/language";
import { type Route, route } from "./core/router";
import { effect, onCleanup, untracked } from "./core/signal";
import { cancelPage } from "./customer/cancel";
import { confirmPage } from "./customer/confirm";
import { contactPage } from "./customer/contact";
import { datePage } from "./customer/date";
import { failPage } from "./customer/fail";
import { frame } from "./customer/frame";
import { franchisePage } from "./customer/franchise";
import { home } from "./customer/home";
import { legalPage } from "./customer/legal";
import { loginPage } from "./customer/login";
import { broken, missing } from "./customer/missing";
import { myPage } from "./customer/my";
import { payPage } from "./customer/pay";
import { receiptPage } from "./customer/receipt";
import { refundPage } from "./customer/refund";
import { roomsPage } from "./customer/rooms";
import { summaryPage } from "./customer/summary";
import { speakIn } from "./customer/text";

const screens: Route[] = [
  { path: "/", view: home },
  { path: "/b/:branch", view: datePage },
  { path: "/b/:branch/:date", view: roomsPage },
  { path: "/b/:branch/:date/:room/:times", view: summaryPage },
  { path: "/book/contact", view: contactPage },
  { path: "/book/pay", view: payPage, isolated: true },
  { path: "/book/confirm", view: confirmPage },
  { path: "/book/fail", view: failPage },
  { path: "/book/receipt", view: receiptPage },
  { path: "/login", view: loginPage },
  { path: "/my", view: myPage },
  { path: "/my/:id/cancel", view: cancelPage },
  { path: "/refund/:token", view: refundPage },
  { path: "/terms", view: legalPage("terms") },
  { path: "/privacy", view: legalPage("privacy") },
  { path: "/franchise", view: franchisePage },
];

// A page restored from the back-forward cache would show a hold that has been paid or has expired since.
addEventListener("pageshow", (event) => {
  if (event.persisted && location.pathname.startsWith("/book/")) location.reload();
});

void speakIn(language.peek(), () => language.set("ko")).then(start);

function start(): void {
  const app = document.getElementById("app")!;
  const focusAgain = focusIn(app);
  effect(() => {
    language(); // another language renders every screen again
    onCleanup(untracked(() => route(app, screens, missing, frame, broken)));
  });
  // The screen with its data is complete after the pending promises, before the browser paints.
  setTimeout(() => {
    dropCarried();
    focusAgain();
  });
  app.removeAttribute("data-first");
}

/** Remembers which element of the server's screen has the focus. The returned function focuses the one that replaces it. */
function focusIn(app: Element): () => void {
  const old = document.activeElement;
  if (!old || old === app || !app.contains(old)) return () => {};
  const way: number[] = [];
  for (let e = old; e !== app; e = e.parentElement!) way.unshift([...e.parentElement!.children].indexOf(e));
  return () => {
    const found = way.reduce((e: Element | undefined, n) => e?.children[n], app);
    if (found?.localName === old.localName && found.textContent === old.textContent)
      (found as HTMLElement).focus({ preventScroll: true });
  };
}

// The service worker stores the files of this page. It starts late so that the page loads first.
if (location.pathname !== "/book/pay") {
  addEventListener("load", () => setTimeout(() => void keepForLater(), 1000));
}

async function keepForLater(): Promise<void> {
  if (!navigator.serviceWorker) return;
  await navigator.serviceWorker.register("/sw.js");
  const worker = (await navigator.serviceWorker.ready).active;
  const files = performance
    .getEntriesByType("resource")
    .map((e) => new URL(e.name).pathname)
    .filter((p) => p.startsWith("/assets/"));
  worker?.postMessage({ keep: "/", files });
}
