/** How long a form may take before its button shows that it works, in ms. */
const patience = 300

/** The button that sent a form shows that the answer is awaited. */
export function showWork (): void {
  document.addEventListener('submit', ({ submitter }) => {
    if (submitter === null) return
    setTimeout(() => { if (submitter.isConnected) submitter.setAttribute('aria-busy', 'true') }, patience)
  })
  // A page that comes back from the history is not at work.
  addEventListener('pageshow', () => {
    for (const button of document.querySelectorAll('[aria-busy=true]')) button.removeAttribute('aria-busy')
  })
}
