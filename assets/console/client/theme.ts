/**
 * Changes the theme at once and sends it to the server, which sets the cookie. If that request fails, the form is
 * submitted.
 */
export function chooseTheme (): void {
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
