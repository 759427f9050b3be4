import { unmarkBusyButton } from './busy.ts'

/**
 * Sends forms with `data-follow`, which make a call to a server, in the background: meanwhile, the page shows the
 * progress of the call and can cancel it. The response is an event stream (`routes/console/trial.ts`) whose last event
 * contains the page with the result. Without this script, the browser waits for that page.
 */
export function sendCallsInBackground (): void {
  document.addEventListener('submit', (event) => {
    // Handles only the buttons that make the call: the button `call`, the button without a value that Enter activates,
    // and the buttons that answer a question of the server.
    const { target: form, submitter } = event
    if (!(form instanceof HTMLFormElement) || form.dataset.follow === undefined) return
    if (!(submitter instanceof HTMLButtonElement)) return
    if (!['call', ''].includes(submitter.value) && submitter.name !== 'answer') return
    event.preventDefault()
    void follow(form, submitter)
  })
}

/** Sends a form, and shows the progress and the result of the call. @param button the button that submitted the form */
async function follow (form: HTMLFormElement, button: HTMLButtonElement): Promise<void> {
  const panel = document.querySelector<HTMLElement>('#calling')
  if (panel === null || !panel.hidden) return
  const [bar, note, cancel] = [panel.querySelector('progress'), panel.querySelector('p'), panel.querySelector('button')]
  const controller = new AbortController()
  const stop = (): void => { controller.abort() }
  cancel?.addEventListener('click', stop)
  document.querySelector('#result')?.remove()
  bar?.removeAttribute('value')
  if (note) note.textContent = ''
  panel.hidden = false
  const body = new URLSearchParams()
  for (const [name, value] of new FormData(form, button)) if (typeof value === 'string') body.append(name, value)
  try {
    const headers = { accept: 'text/event-stream' }
    const response = await fetch(form.action, { method: 'POST', headers, body, signal: controller.signal })
    if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) {
      // The response is another page: the login page, or an error of the form.
      if (response.redirected) location.assign(response.url)
      else showResult(await response.text())
      return
    }
    await readEvents(response, (event, data) => {
      if (event === 'page' && typeof data.html === 'string') showResult(data.html)
      if (event !== 'progress') return
      const { progress, total, message } = data
      if (bar && typeof total === 'number' && typeof progress === 'number') {
        bar.max = total
        bar.value = progress
      }
      const count = typeof total === 'number' ? `${String(progress)} of ${total}` : String(progress ?? '')
      if (note) note.textContent = [count, message].filter((part) => typeof part === 'string' && part !== '').join(': ')
    })
  } catch {
    const hadFocus = panel.contains(document.activeElement)
    panel.hidden = true
    const lost = 'The connection was lost. It is not known whether the call was completed.'
    const section = noteOf(controller.signal.aborted ? 'Cancelled.' : lost)
    panel.after(section)
    if (hadFocus) section.focus()
  } finally {
    cancel?.removeEventListener('click', stop)
    unmarkBusyButton(button)
  }
}

function noteOf (text: string): HTMLElement {
  const section = document.createElement('section')
  section.className = 'sheet'
  section.id = 'result'
  section.tabIndex = -1
  const body = document.createElement('p')
  body.className = 'body'
  body.setAttribute('role', 'status')
  body.textContent = text
  section.append(body)
  return section
}

/** Reads an event stream whose data are JSON objects. @throws Error if the stream ends without the event `page` */
async function readEvents (
  response: Response, onEvent: (event: string, data: Record<string, unknown>) => void
): Promise<void> {
  const decoder = new TextDecoder()
  let text = ''
  let isComplete = false
  const reader = response.body?.getReader()
  for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
    const { value } = part
    text += decoder.decode(value, { stream: true })
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      const [, event = '', data = '{}'] = /^event: (.*)\ndata: (.*)$/.exec(text.slice(0, end)) ?? []
      text = text.slice(end + 2)
      onEvent(event, JSON.parse(data) as Record<string, unknown>)
      isComplete ||= event === 'page'
    }
  }
  if (!isComplete) throw new Error('The stream ended without its last event')
}

/**
 * Replaces `#trial` (the form and its result) by that of the received page; if the page has none, `#main`. If the
 * replaced part had the focus, the result gets it, so that screen readers announce it; or else a question, or an error.
 */
function showResult (html: string): void {
  const page = new DOMParser().parseFromString(html, 'text/html')
  const id = page.querySelector('#trial') ? '#trial' : '#main'
  const [shown, next] = [document.querySelector(id), page.querySelector(id)]
  if (shown === null || next === null) return
  const hadFocus = shown.contains(document.activeElement)
  const fresh = document.importNode(next, true)
  shown.replaceWith(fresh)
  const places = ['#result', '.question', '[aria-invalid=true]', 'button[value=call]']
  const place = places.map((each) => fresh.querySelector<HTMLElement>(each)).find((each) => each !== null)
  if (hadFocus) place?.focus({ preventScroll: true })
  document.querySelector('#result, .banner.error')?.scrollIntoView({ block: 'nearest' })
}
