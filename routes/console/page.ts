import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import {
  type ApiAnswer, ApiError, type Notice, type PageData, type LoadLivePageData, type SubmittedForm, capitalizeMessage,
  valuesToShowAgain
} from '../../plugins/management/index.ts'
import type { RouteEffect } from '../../plugins/base/scopes/index.ts'
import { configuredBaseUrl, type Principal } from '../../plugins/settings/index.ts'
import { requirePrincipal } from '../api/principal.ts'
import { firstQueryValues } from './lists.ts'
import { isPlainObject } from '../../schemas/unknown-members.ts'

export type { SubmittedForm }

/** A request of a signed-in user for a page, or the submission of a form. `form` is empty for a page. */
export interface Visit {
  readonly principal: Principal
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  readonly form: SubmittedForm
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

interface PageOptions {
  readonly title: string
  /** The path of the page below the console. Default: `/` and the name of the page. */
  readonly path?: string
  /** Whether the navigation contains the page: for all users who may open it, or as the function decides. */
  readonly isInNav?: true | ((principal: Principal) => boolean)
  /** Returns data that is compared every second. When the data changes, open pages refresh themselves. */
  readonly watch?: LoadLivePageData
}

interface FormOptions {
  readonly effect: Exclude<RouteEffect, 'read'>
  /** Returns the page that shows the form again if the API rejects the request. Default: the error page. */
  readonly showAgain?: (visit: Visit) => RenderedPage | Promise<RenderedPage>
}

/**
 * A page that shows a form again. `field`: the field beside which all errors are shown, if the page has other forms.
 */
interface RenderedPage { readonly page: string, readonly data: PageData, readonly field?: string }

/** The redirect after a form was handled. `to`: a path below the console. `notice`: for the page at this path. */
interface FormRedirect { readonly to: string, readonly notice?: Notice }
/** The result of handling a form; undefined if the handler has sent a page itself. */
type FormOutcome = FormRedirect | undefined

interface PageRouter {
  /** Adds a page. @param page the name of its template @param show returns the data for the template */
  readonly page: (
    page: string, options: PageOptions, show: (visit: Visit) => Partial<PageData> | Promise<Partial<PageData>>
  ) => void
  /** Adds the route to which a form is submitted. @param act handles the submission */
  readonly form: (path: string, options: FormOptions, act: Act) => void
  /**
   * Adds a page with a form. If the API rejects the submitted form, the page shows it again with the errors. `action`:
   * the path to which the form is submitted. Default: the path of the page.
   */
  readonly edit: (
    page: string, options: PageOptions & { readonly action?: string },
    show: (visit: Visit) => PageData | Promise<PageData>, act: Act
  ) => void
  /**
   * Adds the page that asks whether to remove an object, and the form on it.
   * @param path the path of the object below the console; without `act`, also its path below `/api`
   * @param to the path of the page to show after the removal
   * @param act handles the form. Default: it sends a DELETE request to the API
   */
  readonly removal: (
    path: string, to: string, show: (visit: Visit) => Removal | Promise<Removal>, act?: Act
  ) => void
  /**
   * Sends a request to the API for a submitted form, with the revision in the form as If-Match.
   * @param to the path of the page to show afterwards
   * @param path the path below `/api`. Path parameters of the visit replace parts such as `:name` in `to` and `path`
   */
  readonly submit: (
    visit: Visit, to: string, method: 'POST' | 'PUT' | 'DELETE', path: string, body?: object
  ) => Promise<FormRedirect & { readonly notice: Notice }>
}

/** Handles a submitted form. @throws ApiError if the API rejects the request */
type Act = (visit: Visit) => FormOutcome | Promise<FormOutcome>

/** The content of a page that asks whether to remove an object. */
interface Removal {
  readonly name: string
  /** The noun for the object, such as `key`, which the page puts before the name. */
  readonly noun?: string
  readonly consequences: readonly string[]
  /** A sentence about what the removal keeps. */
  readonly keeps?: string
  readonly crumbs: readonly object[]
  /** The URL of the page to return to without removing. Default: the page to show after the removal. */
  readonly cancel?: string
}

/** Returns the functions that add pages and forms for signed-in users to `app`. */
export function createPageRouter (app: FastifyInstance): PageRouter {
  const { kit } = app
  const mayOpen = ({ isAdmin }: Principal): boolean => isAdmin || app.scope !== 'console-admin'
  const fillPath = (path: string, { params }: Visit): string =>
    path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
  const pages: PageRouter = {
    page: (page, { title, path = `/${page}`, isInNav, watch }, show) => {
      if (isInNav) kit.nav.push({ page, title, isShownTo: isInNav === true ? mayOpen : isInNav })
      if (watch) kit.watches.set(page, app.scope === 'console-admin' ? restrictToAdmins(watch) : watch)
      app.get(path, { config: { effect: 'read' } }, async (request, reply) => {
        const visit = visitOf(request, reply)
        // Computed before the page reads its data, so that no change in between is missed.
        const seen = watch && await kit.live.digestOf(watch, visit.principal, { ...visit.query, ...visit.params })
        const { live, ...data } = await show(visit)
        // `show` has already responded, for example with a redirect.
        if (reply.sent) return reply
        return kit.renderer.send(reply, page, { title, ...data, ...live && { live: { ...live, ...seen && { seen } } } })
      })
    },
    form: (path, { effect, showAgain }, act) => {
      app.post(path, { config: { effect } }, async (request, reply) => {
        const visit = visitOf(request, reply)
        const done = await Promise.resolve(visit).then(act).catch(async (error: unknown) => {
          if (showAgain === undefined || !(error instanceof ApiError)) throw error
          const { page, data, field } = await showAgain(visit)
          if (error.retryAfter !== undefined) reply.header('retry-after', String(error.retryAfter))
          const values = valuesToShowAgain(visit.form)
          const isConflict = isEditConflict(error)
          const errors = isConflict
            ? { '': editConflictMessage }
            : errorsByField(error.fields, field === undefined ? data.fields : [{ name: field }], field)
          kit.renderer.send(reply, page, { ...data, values, errors, isConflict }, error.statusCode)
          return undefined
        })
        if (done === undefined) return reply
        if (done.notice) kit.notify(reply, done.notice)
        return await reply.redirect(`${kit.base}${done.to}`, 303)
      })
    },
    edit: (page, { action, ...options }, show, act) => {
      const { path = `/${page}` } = options
      pages.page(page, { ...options, path }, show)
      const showAgain = async (visit: Visit): Promise<RenderedPage> => ({ page, data: await show(visit) })
      pages.form(action ?? path, { effect: 'change', showAgain }, act)
    },
    removal: (path, to, show, act = async (visit) => await pages.submit(visit, to, 'DELETE', path)) => {
      pages.page('confirm', { title: 'Remove', path: `${path}/remove` }, async (visit) => {
        const { name, noun, ...data } = await show(visit)
        const [subject, label] = noun === undefined ? [name, name] : [`the ${noun} ${name}`, `the ${noun}`]
        const href = `${kit.base}${fillPath(path, visit)}/remove`
        return {
          title: `Remove ${subject}?`,
          subject,
          confirm: { label: `Remove ${label}`, href, method: 'post' },
          cancel: `${kit.base}${to}`,
          ...data
        }
      })
      pages.form(`${path}/remove`, { effect: 'change' }, act)
    },
    submit: async (visit, to, method, path, body) => {
      const { request, form } = visit
      const done = await kit.api.ask(request, method, fillPath(path, visit), body, revisionIn(form))
      return { to: fillPath(to, visit), notice: noticeOfAnswer(done) }
    }
  }
  return pages
}

/** Returns the link to the page that asks whether to remove an object. @param href the URL of the object */
export const createRemoveAction = (href: string): object =>
  ({ label: 'Remove', href: `${href}/remove`, method: 'get', isDanger: true })

/** Returns the button that enables or disables an object. @param href the URL of the object */
export const createToggleAction = (href: string, isEnabled: boolean): object => ({
  label: isEnabled ? 'Turn off' : 'Turn on',
  href: `${href}/toggle`,
  method: 'post',
  fields: { enabled: String(!isEnabled) }
})

/** Converts the form of the button from `createToggleAction` to a request body for the API. */
export const parseEnabledUpdate = (form: SubmittedForm): { enabled: boolean } =>
  ({ enabled: formFieldText(form.enabled) === 'true' })

/**
 * Returns the API's errors by the form field beside which each error is shown. An error about a part of a field's value
 * belongs to the field.
 * @param fields the fields of the form; if this is not a list, the errors are returned unchanged
 * @param rest the field to which other errors belong; '' for the whole form
 */
function errorsByField (found: ApiError['fields'], fields: unknown, rest = ''): Record<string, string> {
  if (!Array.isArray(fields)) return found
  const names = (fields as ReadonlyArray<{ readonly name: string }>).map(({ name }) => name)
  const placed: Record<string, string> = {}
  for (const [path, text] of Object.entries(found)) {
    const name = names.find((each) => path === each || path.startsWith(`${each}.`)) ?? rest
    const sentence = name === path || path === '' ? text : `${path}: ${text}`
    placed[name] = placed[name] === undefined ? sentence : `${placed[name]}\n${sentence}`
  }
  return placed
}

/** Whether the API rejected a change because the record has changed since the form was shown. */
export const isEditConflict = ({ code }: ApiError): boolean => code === 'TH_CHANGED_MEANWHILE'

/**
 * The error message for an `isEditConflict`. With it, the form is shown again with the typed values and the current
 * revision, so that the user can save again.
 */
export const editConflictMessage = 'This was changed in the meantime, in another tab or by someone else. Nothing was ' +
  'saved. Below is what you typed: saving again replaces that change.'

/** Returns the revision of the record at the time when a form was shown; undefined if the form contains none. */
export const revisionIn = (form: SubmittedForm): string | undefined => formFieldText(form.revision) || undefined

/**
 * Makes the `watch` of an admin page throw NotFound for other users. This is needed since every user can request the
 * stream of any page.
 */
const restrictToAdmins = (watch: LoadLivePageData): LoadLivePageData => (principal, params) => {
  if (!principal.isAdmin) throw new errors.NotFound()
  return watch(principal, params)
}

const visitOf = (request: FastifyRequest, reply: FastifyReply): Visit => ({
  principal: requirePrincipal(request),
  params: request.params as Visit['params'],
  query: firstQueryValues(request),
  form: (request.body ?? {}) as SubmittedForm,
  request,
  reply
})

/** Returns the notice for a response of the management API, whose message already contains the warnings. */
export const noticeOfAnswer = ({ message = 'Done', warnings = [] }: ApiAnswer): Notice =>
  ({ kind: warnings.length > 0 ? 'warning' : 'done', text: `${message}.` })

/** Returns the URL of the global MCP route: below the configured base URL, or else below the host of the request. */
export function mcpEndpointUrl ({ settings, config }: FastifyInstance, { protocol, host }: FastifyRequest): string {
  return `${configuredBaseUrl(settings.current.system, config) ?? `${protocol}://${host}${config.basePath}`}/mcp`
}

/**
 * Returns the items that contain a search term in one of their texts, ignoring case; all items for an empty term.
 * @param textsOf returns the texts of an item
 */
export const filterByText = <Item>(
  items: readonly Item[], term: string, textsOf: (item: Item) => readonly unknown[]
): Item[] => {
  const sought = term.trim().toLowerCase()
  return sought === ''
    ? [...items]
    : items.filter((item) => textsOf(item).some((text) => String(text ?? '').toLowerCase().includes(sought)))
}

/** The verbs for what a rule does, as in "the rule denies", by the decision (`then`) of the policy. */
export const decisionWords = { allow: 'allows', deny: 'denies', ask: 'asks', hide: 'hides' } as const

/** Converts a clause to a sentence with a capital letter and a full stop. */
export const toSentence = (reason = ''): string => `${capitalizeMessage(reason.replace(/\.$/, ''))}.`

/** Returns the values of a form field, without empty ones. */
export const formFieldValues = (field: string | string[] | undefined): string[] =>
  [field ?? []].flat().filter((each) => each !== '')

/** Returns the first value of a form field; '' if the field is missing. */
export const formFieldText = (field: string | string[] | undefined): string => [field ?? ''].flat()[0] ?? ''

/** Returns the texts of those fields that `kit.formOf` has created from a JSON Schema, by field name. */
export const argumentFieldsIn = (sent: SubmittedForm): Record<string, string> => Object.fromEntries(Object.entries(sent)
  .filter(([name]) => /^arg(?:[/~]|$)/.test(name)).map(([name, value]) => [name, formFieldText(value)]))

/** Returns the trimmed lines of a form field, without empty ones. */
export const formFieldLines = (field: SubmittedForm[string]): string[] =>
  formFieldText(field).split('\n').map((line) => line.trim()).filter((line) => line !== '')

/** Converts a text to a whole number. Other text is returned unchanged, so that the API rejects it with a message. */
export const toNumberOrText = (text: string): number | string => /^-?\d+$/.test(text) ? Number(text) : text

/**
 * Parses a JSON object. An empty text is an empty object.
 * @param subject the start of the error message if the value is not an object, such as `Arguments are`
 * @returns the object, or an error message
 */
export function parseJsonObjectOrProblem (text: string, subject: string): Readonly<Record<string, unknown>> | string {
  try {
    const value: unknown = JSON.parse(text.trim() === '' ? '{}' : text)
    return isPlainObject(value) ? value : `${subject} a JSON object.`
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : String(error)}.`
  }
}
