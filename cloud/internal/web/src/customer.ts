// The customers' site: every screen and its address. The server knows the addresses too (shell.go).

import { language } from "./core/language";
import { type Route, route } from "./core/router";
import { effect, onCleanup, untracked } from "./core/signal";
import { cancelPage } from "./customer/cancel";
import { confirmPage } from "./customer/confirm";
import { contactPage } from "./customer/contact";
import { datePage } from "./customer/date";
import { failPage } from "./customer/fail";
import { frame } from "./customer/frame";
import { home } from "./customer/home";
import { legalPage } from "./customer/legal";
import { loginPage } from "./customer/login";
import { missing } from "./customer/missing";
import { myPage } from "./customer/my";
import { payPage } from "./customer/pay";
import { receiptPage } from "./customer/receipt";
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
  { path: "/terms", view: legalPage("terms") },
  { path: "/privacy", view: legalPage("privacy") },
];

await speakIn(language.peek());

effect(() => {
  language(); // another language makes every screen anew
  onCleanup(untracked(() => route(document.getElementById("app")!, screens, missing, frame)));
});

// Kept by the service worker: what this page was made of. Waits, so that the page itself comes first.
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
