import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import type { ViewerIdentity, ProgressOptions, McpAnswer, PageData } from '../../plugins/management/index.ts'
import { readArgumentsForm } from './arguments.ts'
import { viewerSelectOptions, resolveAndAuditViewer, mcpPathOf, mcpRouteSelectOptions } from './viewers.ts'
import { type RouteItem, type RouteItemKind, routeItemKindNames, routeItemKinds } from './route-item-kinds.ts'
import { filterByText, createPageRouter, formFieldText, type Visit } from './page.ts'
import {
  type WaitingCall, addAnswer, problemOfQuestions, questionsOf, readInputRequests, readWaitingCall
} from './questions.ts'
import { paginate, urlWithQuery } from './lists.ts'
import { showWithProgress } from './trial.ts'

type Query = Visit['query']
/** A response of the MCP endpoint, with the duration of the request in ms. */
type TimedAnswer = McpAnswer & { readonly ms: number }
/** The item that the user has selected, with the JSON Schema of its arguments. */
interface ChosenItem { readonly kind: RouteItemKind, readonly item: RouteItem, readonly schema: unknown }

/** The page that lists the tools, prompts and resources of an MCP route, and runs them. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  const { page, form } = createPageRouter(app)
  const title = 'Playground'

  page('playground', { title, isInNav: true }, async (visit) => {
    const { data, chosen } = await toPageData(app, visit)
    return { ...data, ...chosen && { mode: 'form', json: '{}', fields: kit.formOf(chosen.schema).fields({}) } }
  })

  // The items are listed as the selected viewer sees them. Calls are made with the pasted credential if there is one,
  // without a credential if the viewer is `nobody`, and otherwise as the signed-in user.
  form('/playground', { effect: 'run' }, async (visit) => {
    const { data, chosen } = await toPageData(app, visit)
    const send = (
      more: object,
      errors: Readonly<Record<string, string>> = {},
      status = Object.keys(errors).length > 0 ? 400 : 200
    ): undefined => {
      kit.renderer.send(visit.reply, 'playground', { ...data, ...more, errors }, status)
    }
    if (!chosen) return send({})
    const { schema } = chosen
    const call = async (waiting: WaitingCall, more: object): Promise<undefined> => {
      await showWithProgress(app, visit, 'playground', async (follow) =>
        ({ ...data, ...more, ...toResultData(app, visit, waiting, await ask(app, visit, chosen, waiting, follow)) }))
    }
    const fields = (values: Readonly<Record<string, string>>): object[] => kit.formOf(schema).fields(values)
    const problem = credentialProblemOf(formFieldText(visit.form.credential))
    const question = readWaitingCall(formFieldText(visit.form.question))
    if (question) {
      const json = question.args
      const shownForm = { mode: 'form', json, fields: fields(kit.formOf(schema).toDraft(JSON.parse(json) as object)) }
      const next = problem ? { errors: problem } : addAnswer(app, question, visit.form)
      const { name } = question
      const { url } = visit.request
      if ('errors' in next) {
        const refused = { name, form: visit.form, errors: next.errors }
        return send({ ...shownForm, questions: questionsOf(app, url, question, refused) }, {}, 400)
      }
      if (next.open.length > 0) return send({ ...shownForm, questions: questionsOf(app, url, next) })
      return await call(next, shownForm)
    }
    const { values, errors, args, ...more } = readArgumentsForm(app, visit.form, schema)
    const shownArguments = { ...more, fields: fields(values) }
    return args === undefined || problem
      ? send(shownArguments, { ...errors, ...problem })
      : await call({ args, open: [], responses: {} }, shownArguments)
  })
}
export default routes

/** The max length of a pasted credential, in characters. */
const maxCredential = 8_192

/** Returns the error message for the credential field; undefined if the text can be a credential or is empty. */
const credentialProblemOf = (credential: string): Record<string, string> | undefined =>
  credential.length <= maxCredential && /^[\x21-\x7e]*$/.test(credential)
    ? undefined
    : { credential: 'A credential cannot contain spaces.' }

/** Returns the selected item, if any, and the data of the page except the form and the result of a call. */
async function toPageData (app: FastifyInstance, visit: Visit): Promise<{ data: PageData, chosen?: ChosenItem }> {
  const { kit } = app
  const { principal, query, request } = visit
  const { route = '', eyes = 'self', item: key = '', q = '', page = '1' } = query
  const kind = routeItemKindNames.find((each) => each === query.kind) ?? 'tools'
  const { noun, run, keyOf, schemaOf } = routeItemKinds[kind]
  const own = principal.username ?? ''
  const path = `${kit.base}/playground`
  const common = {
    title: 'Playground',
    routes: mcpRouteSelectOptions(app, principal, route),
    eyes: viewerSelectOptions(app, principal, eyes),
    route,
    eye: eyes,
    q,
    kind,
    noun,
    run: `${run} as ${eyes === 'nobody' ? 'anonymous' : own}`
  }
  // `urlWithQuery` omits empty values, so a link to the global route, which is empty, has only `eyes`.
  if (query.route === undefined && query.eyes === undefined) return { data: common }
  const listed = await kit.mcp.list(request, mcpPathOf(route), resolveAndAuditViewer(app, principal, eyes, route), kind)
  if ('problem' in listed) return { data: { ...common, problem: listed.problem } }
  const all: RouteItem[] = listed.items
  const hrefOf = (more: Query): string => urlWithQuery(path, { route, eyes, ...more })
  const matching = filterByText(all, q, ({ name, uri, description }) => [name, uri, description])
  const { items, pages } = paginate(matching, path, { route, eyes, kind, q, page })
  const item = key === '' ? undefined : all.find((each) => keyOf(each) === key)
  return {
    ...item && { chosen: { kind, item, schema: schemaOf(item) } },
    data: {
      ...common,
      ...item && { chosen: key },
      kinds: routeItemKindNames.map((each) =>
        ({ title: routeItemKinds[each].title, href: hrefOf({ kind: each }), isCurrent: each === kind })),
      list: {
        total: all.length,
        tokens: listed.tokens,
        pages,
        items: items.map((each) => ({
          name: keyOf(each),
          description: each.description,
          tokens: kit.costs.ofValue(each),
          href: hrefOf({ kind, q, page, item: keyOf(each) }),
          isChosen: keyOf(each) === key
        }))
      }
    }
  }
}

/** Runs an item over MCP, or continues a call with the answers to the server's questions. */
async function ask (
  { kit }: FastifyInstance,
  visit: Visit,
  { kind, item }: ChosenItem,
  { args, state, responses }: WaitingCall,
  follow: ProgressOptions
): Promise<TimedAnswer> {
  const { principal, query: { route = '', eyes = 'self' }, form, request } = visit
  const { keyOf, method, paramsOf } = routeItemKinds[kind]
  const params = [
    ...paramsOf(keyOf(item), args),
    ...state === undefined ? [] : [`"requestState":${JSON.stringify(state)}`],
    ...state === undefined ? [] : [`"inputResponses":${JSON.stringify(responses)}`]
  ]
  const credential = formFieldText(form.credential)
  const own: ViewerIdentity = eyes === 'nobody' ? undefined : { username: principal.username ?? '' }
  const caller = credential === '' ? own : { credential }
  const begun = performance.now()
  const answer = await kit.mcp.ask(
    request, mcpPathOf(route), caller, method, `{${params.join(',')}}`, { tool: item, follow }
  )
  return { ...answer, ms: performance.now() - begun }
}

/** Returns the data that the page shows about a response: the result, or the server's questions. */
function toResultData (app: FastifyInstance, { request }: Visit, { args }: WaitingCall, answer: TimedAnswer): object {
  const { result, problem, messages, ms } = answer
  if (result === undefined) {
    return { messages, result: { isError: true, ms, blocks: [{ kind: 'text', text: problem ?? '' }] } }
  }
  if (result.resultType === 'input_required') {
    const open = readInputRequests(result.inputRequests)
    const waiting = { args, state: String(result.requestState ?? ''), open: open ?? [], responses: {} }
    const refusal = open ? problemOfQuestions(waiting) : 'The server’s question does not follow the protocol'
    return refusal === undefined
      ? { messages, questions: questionsOf(app, request.url, waiting) }
      : { messages, result: { isError: true, ms, blocks: [{ kind: 'text', text: `${refusal}.` }] } }
  }
  return { messages, result: { isError: result.isError === true, ms, blocks: app.kit.blocksOf(result) } }
}
