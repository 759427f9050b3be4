/** Time after which the button of a submitted form is shown as busy, in ms. */
const patience = 300

/** Marks the button that submitted a form as busy until the response arrives. */
export function showWork (): void {
  document.addEventListener('submit', ({ submitter }) => {
    if (submitter === null) return
    setTimeout(() => { if (submitter.isConnected) submitter.setAttribute('aria-busy', 'true') }, patience)
  })
  // A page restored from the history is no longer busy.
  addEventListener('pageshow', () => {
    for (const button of document.querySelectorAll('[aria-busy=true]')) button.removeAttribute('aria-busy')
  })
}
