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
    equal(line.textContent, message);
    equal(message.length > 0, true);
  });
}

test("a reason that arrives after another press is not shown", async () => {
  const { code, door } = all[0]!;
  speak("ko");
  for (const [again, shown] of [
    ['<b data-result="opened">2번 룸 문이 열렸어요</b>', false],
    ['<b data-result="failed">현관문이 열리지 않았어요</b>', false],
    ['<b data-result="failed">2번 룸 문이 열리지 않았어요</b>', true],
  ] as const) {
    const main = document.createElement("main");
    main.dataset.branch = "gangnam";
    main.innerHTML =
      '<b data-result="waiting" hidden></b><b data-result="failed">2번 룸 문이 열리지 않았어요</b><p id="why"></p>';
    const late = explainDoor(main, code, door);
    main.querySelector("[data-result=failed]")!.outerHTML = again;
    await late;
    equal(main.querySelector("#why")!.textContent !== "", shown);
  }
});

test("a service that does not answer leaves no sentence", async () => {
  const main = document.createElement("main");
  main.innerHTML = '<p id="why">an earlier sentence</p>';
  speak("ko");
  await explainDoor(main, "no/such/path", "room");
  equal(main.querySelector("#why")!.textContent, "");
});

void report();
