// Forms that the page itself sends, and links that it follows itself.

/** Handles the submit event of a form: the page stays, and send runs unless an earlier call has not ended. */
export const submits =
  (send: () => unknown, busy: () => boolean = () => false) =>
  (event: Event): void => {
    event.preventDefault();
    if (!busy()) void send();
  };

/** Whether a click asks for nothing special, such as another tab. */
export const plain = (event: MouseEvent): boolean =>
  event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;

/** Handles the clicks on a link: the page stays, and run is called. Without scripts the link leads to its address. */
export const clicks =
  (run: () => unknown) =>
  (event: MouseEvent): void => {
    if (!plain(event)) return;
    event.preventDefault();
    void run();
  };
