import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type ApiAnswer, ApiError, type Notice, type PageData, type Watch } from '../../plugins/management/index.ts'
import type { Effect } from '../../plugins/base/scopes/index.ts'
import { configuredBase, type Principal } from '../../plugins/settings/index.ts'
import { principalOf } from '../api/principal.ts'

/** The fields of a form. One that was sent twice is a list. */
export type Form = Readonly<Record<string, string | string[] | undefined>>

/** A request for a page, or of a form. */
export interface Visit {
  readonly principal: Principal
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  readonly form: Form
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

interface PageOptions {
  readonly title: string
  /** The path below the console; by default, the name of the page. */
  readonly path?: string
  /** It stands in the navigation. */
  readonly isInNav?: true
  /** What the page shows, as far as it changes by itself. */
  readonly watch?: Watch
}

interface FormOptions {
  readonly effect: Exclude<Effect, 'read'>
  /** Shows the form again, with what was typed and what is wrong; undefined: a page of its own tells the error. */
  readonly again?: (visit: Visit) => Shown | Promise<Shown>
}

/** A page that a form comes back with. */
interface Shown { readonly page: string, readonly data: PageData }

/** Where a form leads. */
interface Done { readonly to: string, readonly notice?: Notice }
/** undefined: it has sent a page. */
type Acted = Done | undefined

interface Pages {
  /** @param show makes the data of the page */
  readonly page: (
    page: string, options: PageOptions, show: (visit: Visit) => Partial<PageData> | Promise<Partial<PageData>>
  ) => void
  readonly form: (path: string, options: FormOptions, act: (visit: Visit) => Acted | Promise<Acted>) => void
}

/** Adds pages and forms for people who have signed in to an instance. */
export function pagesOf (app: FastifyInstance): Pages {
  const { kit } = app
  return {
    page: (page, { title, path = `/${page}`, isInNav, watch }, show) => {
      if (isInNav) kit.nav.push({ page, title, isForAdmins: app.scope === 'console-admin' })
      if (watch) kit.watches.set(page, watch)
      app.get(path, { config: { effect: 'read' } }, async (request, reply) =>
        kit.renderer.send(reply, page, { title, ...await show(visitOf(request, reply)) }))
    },
    form: (path, { effect, again }, act) => {
      app.post(path, { config: { effect } }, async (request, reply) => {
        const visit = visitOf(request, reply)
        const done = await Promise.resolve(visit).then(act).catch(async (error: unknown) => {
          if (again === undefined || !(error instanceof ApiError)) throw error
          const { page, data } = await again(visit)
          if (error.retryAfter !== undefined) reply.header('retry-after', String(error.retryAfter))
          const values = typedIn(visit.form)
          kit.renderer.send(reply, page, { ...data, values, errors: error.fields }, error.statusCode)
          return undefined
        })
        if (done === undefined) return reply
        if (done.notice) kit.notify(reply, done.notice)
        return await reply.redirect(`${kit.base}${done.to}`, 303)
      })
    }
  }
}

/** What was typed into a form, but for passwords. */
const typedIn = (form: Form): Form =>
  Object.fromEntries(Object.entries(form).filter(([name]) => name !== '_csrf' && !/password|^repeated$/i.test(name)))

const visitOf = (request: FastifyRequest, reply: FastifyReply): Visit => ({
  principal: principalOf(request),
  params: request.params as Visit['params'],
  query: request.query as Visit['query'],
  form: (request.body ?? {}) as Form,
  request,
  reply
})

/** What the management API said, with its warnings. */
export const noticeOf = ({ message = 'Done', warnings = [] }: ApiAnswer): Notice =>
  ({ kind: warnings.length > 0 ? 'warning' : 'done', text: `${message}.` })

/** The address of MCP, as configured, else by which the reader has reached the gateway. */
export function endpointOf ({ settings, config }: FastifyInstance, { protocol, host }: FastifyRequest): string {
  return `${configuredBase(settings.current.system, config) ?? `${protocol}://${host}${config.basePath}`}/mcp`
}

/** What a list shows that is searched: those of which a text holds the words, in any case. */
export const found = <Item>(
  items: readonly Item[], words: string, textsOf: (item: Item) => readonly unknown[]
): Item[] => {
  const sought = words.trim().toLowerCase()
  return sought === ''
    ? [...items]
    : items.filter((item) => textsOf(item).some((text) => String(text ?? '').toLowerCase().includes(sought)))
}

/** A field of a form as a list. */
export const listOf = (field: string | string[] | undefined): string[] =>
  [field ?? []].flat().filter((each) => each !== '')

/** A field of a form as one text. */
export const textOf = (field: string | string[] | undefined): string => [field ?? ''].flat()[0] ?? ''
