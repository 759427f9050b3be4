/**
 * Handles the form that selects the theme: the server sets the cookie, and the page changes without being reloaded. If
 * the request fails, the form is submitted.
 */
export function switchTheme (): void {
  const form = document.querySelector<HTMLFormElement>('form.theme')
  form?.addEventListener('submit', (event) => {
    const { submitter } = event
    if (!(submitter instanceof HTMLButtonElement)) return
    event.preventDefault()
    const body = new URLSearchParams()
    for (const [name, value] of new FormData(form, submitter)) body.append(name, String(value))
    void fetch(form.action, { method: 'POST', body, redirect: 'manual' }).then(
      () => {
        document.documentElement.dataset.theme = submitter.value
        for (const each of form.querySelectorAll('button')) {
          each.setAttribute('aria-pressed', String(each === submitter))
        }
      },
      () => { form.submit() }
    )
  })
}
