import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import type { McpAnswer, PageData } from '../../plugins/management/index.ts'
import { eyesOf, lookWith, pathOf, routesOf } from './eyes.ts'
import { found, pagesOf, textOf, type Visit } from './page.ts'
import { type Asked, answered, questionsOf, readAsked } from './questions.ts'
import { addressOf, partOf } from './states.ts'
import { argumentsOf } from './tool.ts'

interface Tool { readonly name?: string, readonly description?: string, readonly inputSchema?: unknown }
type Query = Visit['query']
/** `ms`: duration of the request. */
type Timed = McpAnswer & { readonly ms: number }

/** Page: lists the tools of an MCP route and calls them. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  const { page, form } = pagesOf(app)
  const title = 'Playground'

  page('playground', { title, isInNav: true }, async (visit) => {
    const { data, tool } = await shown(app, visit)
    return { ...data, ...tool && { mode: 'form', json: '{}', fields: kit.formOf(tool.inputSchema).fields({}) } }
  })

  // Whichever identity lists the tools, calls run as the signed-in user or, if chosen, without a credential.
  form('/playground', { effect: 'run' }, async (visit) => {
    const { data, tool } = await shown(app, visit)
    const send = (more: object, errors: Readonly<Record<string, string>> = {}): undefined => {
      const status = Object.keys(errors).length > 0 ? 400 : 200
      kit.renderer.send(visit.reply, 'playground', { ...data, ...more, errors }, status)
    }
    if (!tool) return send({})
    const call = async (asked: Asked): Promise<object> => toldOf(app, visit, asked, await ask(app, visit, tool, asked))
    const fields = (values: Readonly<Record<string, string>>): object[] => kit.formOf(tool.inputSchema).fields(values)
    const question = readAsked(textOf(visit.form.question))
    if (question) {
      const draft = kit.formOf(tool.inputSchema).draft(JSON.parse(question.args) as object)
      const next = answered(app, question, visit.form)
      const more = 'errors' in next
        ? { questions: questionsOf(app, visit.request.url, question, next.errors) }
        : next.open.length > 0
          ? { questions: questionsOf(app, visit.request.url, next) }
          : await call(next)
      return send({ mode: 'form', json: question.args, fields: fields(draft), ...more })
    }
    const { values, errors, args, ...more } = argumentsOf(app, visit.form, tool.inputSchema)
    const done = args === undefined ? {} : await call({ args, open: [], responses: {} })
    return send({ ...more, fields: fields(values), ...done }, errors)
  })
}
export default routes

/** The data of the page, without that of a call. */
async function shown (app: FastifyInstance, visit: Visit): Promise<{ data: PageData, tool?: Tool }> {
  const { kit } = app
  const { principal, query, request } = visit
  const { route = '', eyes = 'self', tool: chosen = '', q = '', page = '1' } = query
  const own = principal.username ?? ''
  const common = {
    title: 'Playground',
    routes: routesOf(app, principal, route),
    eyes: eyesOf(app, principal, eyes),
    route,
    eye: eyes,
    q,
    caller: eyes === 'nobody' ? 'nobody' : own
  }
  if (query.route === undefined) return { data: common }
  const listed = await kit.mcp.tools(request, pathOf(route), lookWith(app, principal, eyes, route))
  if ('problem' in listed) return { data: { ...common, problem: listed.problem } }
  const tools: Tool[] = listed.tools
  const hrefOf = (more: Query): string => addressOf(`${kit.base}/playground`, { eyes, q, page, ...more })
  const matching = found(tools, q, ({ name, description }) => [name, description])
  const { items, pages } = partOf(matching, `${kit.base}/playground`, { route, eyes, q, page })
  return {
    tool: tools.find(({ name }) => name === chosen),
    data: {
      ...common,
      ...chosen !== '' && { chosen },
      list: {
        total: tools.length,
        tokens: listed.tokens,
        pages,
        items: items.map((tool) => ({
          name: tool.name,
          description: tool.description,
          tokens: kit.costs.ofValue(tool),
          // `addressOf` drops empty values, but an empty route (the global one) must stay.
          href: `${hrefOf({ tool: tool.name ?? '' })}&${new URLSearchParams({ route }).toString()}`,
          isChosen: tool.name === chosen
        }))
      }
    }
  }
}

/** Calls a tool over MCP, or continues a call with the responses to the server's questions. */
async function ask ({ kit }: FastifyInstance, visit: Visit, tool: Tool, asked: Asked): Promise<Timed> {
  const { principal, query: { route = '', eyes = 'self' }, request } = visit
  const { args, state, responses } = asked
  const params = [
    `"name":${JSON.stringify(tool.name)}`, `"arguments":${args}`,
    ...state === undefined ? [] : [`"requestState":${JSON.stringify(state)}`],
    ...state === undefined ? [] : [`"inputResponses":${JSON.stringify(responses)}`]
  ]
  const caller = eyes === 'nobody' ? undefined : { username: principal.username ?? '' }
  const begun = performance.now()
  const answer = await kit.mcp.ask(request, pathOf(route), caller, 'tools/call', `{${params.join(',')}}`)
  return { ...answer, ms: performance.now() - begun }
}

/** The data of a response for the page: the result, or the server's questions. */
function toldOf (app: FastifyInstance, { request }: Visit, { args }: Asked, answer: Timed): object {
  const { result, problem, messages, ms } = answer
  if (result === undefined) {
    return { messages, result: { isError: true, ms, blocks: [{ kind: 'text', text: problem ?? '' }] } }
  }
  if (result.resultType === 'input_required') {
    const requests = Object.entries(result.inputRequests ?? {}) as Asked['open']
    const asked = { args, state: String(result.requestState ?? ''), open: requests, responses: {} }
    return { messages, questions: questionsOf(app, request.url, asked) }
  }
  return { messages, result: { isError: result.isError === true, ms, blocks: app.kit.blocksOf(result) } }
}
