import { unmarkBusyButton } from './busy.ts'

/** The members of htmx's request context that are used here. */
interface RequestContext {
  target: Element
  sourceElement: Element
  select?: string
  swap: string
  response: { status: number, raw: Response }
}

/**
 * Corrects what htmx does with a response. A response that is another page, such as an error or the login, is shown as
 * a whole. Otherwise, htmx replaces a part of the page by the same part of the response, as usual; but if the live
 * stream has replaced that part during the request, the new part with the same id is the target, since htmx would drop
 * the response.
 */
export function correctHtmxSwaps (): void {
  // There is no response: the gateway is away.
  document.addEventListener('htmx:error', (event) => {
    const { ctx } = (event as CustomEvent<{ ctx?: Pick<RequestContext, 'sourceElement'> }>).detail
    const button = ctx?.sourceElement.querySelector<HTMLElement>('button.switch')
    const banner = document.querySelector<HTMLElement>('#not-sent')
    if (!button || !banner) return
    unmarkBusyButton(button)
    banner.hidden = false
  })
  document.addEventListener('htmx:after:swap', () => {
    const banner = document.querySelector<HTMLElement>('#not-sent')
    if (banner) banner.hidden = true
  })
  document.addEventListener('htmx:after:request', (event) => {
    const { ctx } = (event as CustomEvent<{ ctx: RequestContext }>).detail
    const path = new URL(ctx.response.raw.url).pathname
    const isOther = ctx.response.raw.redirected && path !== location.pathname
    if (isOther) {
      event.preventDefault()
      location.assign(ctx.response.raw.url)
    } else if (ctx.response.status >= 400) {
      ctx.target = document.body
      ctx.select = undefined
      ctx.swap = 'outerHTML'
    } else if (!ctx.target.isConnected) {
      ctx.target = document.getElementById(ctx.target.id) ?? ctx.target
    }
  })
}
