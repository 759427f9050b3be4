/**
 * Handles the form that selects the theme: the server sets the cookie, and the page changes without being reloaded. If
 * the server does not answer with a redirect, as it does after it has set the cookie, the browser submits the form.
 */
export function switchTheme (): void {
  const form = document.querySelector<HTMLFormElement>('form.theme')
  let isRefused = false
  form?.addEventListener('submit', (event) => {
    const { submitter } = event
    if (isRefused || !(submitter instanceof HTMLButtonElement)) return
    event.preventDefault()
    const body = new URLSearchParams()
    for (const [name, value] of new FormData(form, submitter)) body.append(name, String(value))
    void fetch(form.action, { method: 'POST', body, redirect: 'manual' }).then(
      ({ type }) => type === 'opaqueredirect', () => false
    ).then((isStored) => {
      if (!isStored) {
        isRefused = true
        form.requestSubmit(submitter)
        return
      }
      document.documentElement.dataset.theme = submitter.value
      for (const each of form.querySelectorAll('button')) {
        each.setAttribute('aria-pressed', String(each === submitter))
      }
    })
  })
}
