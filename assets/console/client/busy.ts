/** Time from the submission of a form until its button is marked as busy, in ms. */
const busyDelay = 300

/** Marks the button that submitted a form as busy (`aria-busy`) if it is still on the page after `busyDelay`. */
export function markBusyButtons (): void {
  document.addEventListener('submit', ({ submitter }) => {
    if (submitter === null) return
    setTimeout(() => { if (submitter.isConnected) submitter.setAttribute('aria-busy', 'true') }, busyDelay)
  })
  // The browser may restore the page from its history in the state in which it was left, with a busy button.
  addEventListener('pageshow', () => {
    for (const button of document.querySelectorAll('[aria-busy=true]')) button.removeAttribute('aria-busy')
  })
}
