/** Shows the digits that a keypad takes. */
export function spell(digits: Element, pin: string): void {
  digits.textContent = "";
  for (const d of pin) {
    const digit = digits.appendChild(document.createElement("i"));
    digit.textContent = d;
    digit.setAttribute("aria-hidden", "true");
  }
  digits.setAttribute("aria-label", Array.from(pin).join(" "));
}
