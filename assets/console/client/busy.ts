/** Time from the submission of a form until its button is marked as busy, in ms. */
const busyDelay = 300

/** The timers that mark buttons as busy, by button. */
const timers = new WeakMap<HTMLElement, number>()

/** Marks the button that submitted a form as busy (`aria-busy`) if it is still on the page after `busyDelay`. */
export function markBusyButtons (): void {
  document.addEventListener('submit', ({ submitter }) => {
    if (submitter === null) return
    const mark = (): void => { if (submitter.isConnected) submitter.setAttribute('aria-busy', 'true') }
    timers.set(submitter, window.setTimeout(mark, busyDelay))
  })
  // The browser may restore the page from its history in the state in which it was left, with a busy button.
  addEventListener('pageshow', () => {
    for (const button of document.querySelectorAll('[aria-busy=true]')) button.removeAttribute('aria-busy')
  })
}

/** Removes the mark of a button whose form was sent in the background, also if `busyDelay` is not over yet. */
export function unmarkBusyButton (button: HTMLElement): void {
  clearTimeout(timers.get(button))
  button.removeAttribute('aria-busy')
}
