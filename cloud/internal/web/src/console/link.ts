// Links between the screens of the console. Each role is offered those that it has.

import { type Child, h, type Props } from "../core/dom";
import { mayOpen } from "./session";

/** A link to a screen. A role without the screen is shown the text alone. */
export const link = (href: string, text: Child, props: Props = {}): Child =>
  mayOpen(href) ? h("a", { href, ...props }, text) : text;

/** A link to a screen that looks like a button. A role without the screen is shown nothing. */
export const linkButton = (href: string, text: Child): Child =>
  mayOpen(href) ? h("a", { class: "button soft", href }, text) : null;
