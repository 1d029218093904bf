// Shows every reason why a door does not open on the key page.

import { lend } from "../src/key-call";
import { explainDoor } from "../src/key-guests";
import { equal, report, test } from "./check";

const speak = (lang: string) =>
  lend({ request: (address, _ms, init) => ({ response: fetch(address, init) }), spell: () => {}, lang });

interface Shown {
  code: string;
  door: string;
  lang: string;
  message: string;
}

const all = (await (await fetch("/sentences")).json()) as Shown[];

for (const { code, door, lang, message } of all) {
  test(`${code} ${door} ${lang}`, async () => {
    speak(lang);
    const main = document.createElement("main");
    main.dataset.branch = "gangnam";
    main.innerHTML = '<p id="why"></p>';
    await explainDoor(main, code, door);
    const line = main.querySelector<HTMLElement>("#why")!;
    equal([line.textContent, line.dataset.code], [message, code]);
    equal(message.length > 0, true);
  });
}

test("a service that does not answer leaves no sentence", async () => {
  const main = document.createElement("main");
  main.innerHTML = '<p id="why">an earlier sentence</p>';
  speak("ko");
  await explainDoor(main, "no/such/path", "room");
  equal(main.querySelector("#why")!.textContent, "");
});

void report();
