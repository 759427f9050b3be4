import { unmarkBusyButton } from './busy.ts'

/**
 * Makes the form that selects the theme work without reloading the page: the form is sent in the background, and the
 * page shows the theme once the server has stored it in a cookie and redirects. After any other response, or without
 * one, the browser submits the form as usual.
 */
export function enhanceThemeForm (): void {
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
      unmarkBusyButton(submitter)
      document.documentElement.dataset.theme = submitter.value
      for (const each of form.querySelectorAll('button')) {
        each.setAttribute('aria-pressed', String(each === submitter))
      }
    })
  })
}
