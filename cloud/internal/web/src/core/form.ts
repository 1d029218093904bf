// Forms that the page itself sends.

/** Handles the submit event of a form: the page stays, and send runs unless an earlier call has not ended. */
export const submits =
  (send: () => unknown, busy: () => boolean = () => false) =>
  (event: Event): void => {
    event.preventDefault();
    if (!busy()) void send();
  };
