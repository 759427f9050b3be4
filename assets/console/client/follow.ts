/**
 * Follows forms with `data-follow`, which start a trial: while it runs, the page shows its progress and can cancel it.
 * The response is a stream of events whose last one is the page with the result. Without this script, the browser waits
 * for that page.
 */
export function followTrials (): void {
  document.addEventListener('submit', (event) => {
    // Pressing Enter submits with the first button of the form, which has no value.
    const { target: form, submitter } = event
    if (!(form instanceof HTMLFormElement) || form.dataset.follow === undefined) return
    if (!(submitter instanceof HTMLButtonElement)) return
    if (!['call', ''].includes(submitter.value) && submitter.name !== 'answer') return
    event.preventDefault()
    void follow(form, submitter)
  })
}

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
      else show(await response.text())
      return
    }
    await read(response, (event, data) => {
      if (event === 'page' && typeof data.html === 'string') show(data.html)
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
    panel.hidden = true
    const cut = 'The connection was lost. It is not known whether the call was completed.'
    panel.after(noteOf(controller.signal.aborted ? 'Cancelled.' : cut))
  } finally {
    cancel?.removeEventListener('click', stop)
    button.removeAttribute('aria-busy')
  }
}

function noteOf (text: string): HTMLElement {
  const section = document.createElement('section')
  section.className = 'sheet'
  section.id = 'result'
  const body = document.createElement('p')
  body.className = 'body'
  body.setAttribute('role', 'status')
  body.textContent = text
  section.append(body)
  return section
}

/** Reads a stream of events whose data are JSON objects. */
async function read (response: Response, take: (event: string, data: Record<string, unknown>) => void): Promise<void> {
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
      take(event, JSON.parse(data) as Record<string, unknown>)
      isComplete ||= event === 'page'
    }
  }
  if (!isComplete) throw new Error('The stream ended without its last event')
}

/** Replaces the trial in this page by the one in the received page. */
function show (html: string): void {
  const page = new DOMParser().parseFromString(html, 'text/html')
  const id = page.querySelector('#trial') ? '#trial' : '#content'
  const [shown, next] = [document.querySelector(id), page.querySelector(id)]
  if (shown === null || next === null) return
  shown.replaceWith(document.importNode(next, true))
  document.querySelector('#result, .banner.error')?.scrollIntoView({ block: 'nearest' })
}
