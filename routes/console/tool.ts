import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { ApiError, type PageData } from '../../plugins/management/index.ts'
import { canManage } from '../../plugins/settings/index.ts'
import { argumentsIn, type Form, noticeOf, objectIn, pagesOf, textOf, type Visit } from './page.ts'
import { pageOf } from './states.ts'

/** A tool as the management API shows it. */
interface ListedTool {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly enabled?: boolean
  readonly overridden?: boolean
  readonly inputSchema?: unknown
  readonly annotations?: Readonly<Record<string, unknown>>
}

/** Page: one tool, its description and a test call. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  const { page, form } = pagesOf(app)
  const path = '/servers/:name/tools/:tool'

  page('tool', { title: 'Tool', path }, async (visit) => {
    const tool = await toolOf(app, visit)
    const fields = kit.formOf(tool.inputSchema)
    return { ...shown(app, visit, tool), mode: 'form', json: '{}', fields: fields.fields({}) }
  })

  form(path, { effect: 'run' }, async (visit) => {
    const tool = await toolOf(app, visit)
    const { json, values, errors, ...more } = await answer(app, visit, tool)
    kit.renderer.send(visit.reply, 'tool', {
      ...shown(app, visit, tool), ...more, json, errors, fields: kit.formOf(tool.inputSchema).fields(values)
    }, Object.keys(errors).length > 0 ? 400 : 200)
    return undefined
  })

  form(`${path}/description`, { effect: 'change' }, async ({ request, params, form: sent }) => {
    const api = `${addressOf('', params)}/description`
    const isReset = textOf(sent.do) === 'reset'
    const done = await (isReset
      ? kit.api.ask(request, 'DELETE', api)
      : kit.api.ask(request, 'PUT', api, { description: textOf(sent.description) }))
    return { to: addressOf('', params), notice: noticeOf(done) }
  })
}
export default routes

/** The address of a tool. @param base the path of the console */
const addressOf = (base: string, { name = '', tool = '' }: Visit['params']): string =>
  `${pageOf(base, name)}/tools/${encodeURIComponent(tool)}`

async function toolOf ({ kit }: FastifyInstance, {
  request, params: { name = '', tool = '' }
}: Visit): Promise<ListedTool> {
  const { data } = await kit.api.ask(request, 'GET', `/servers/${encodeURIComponent(name)}`)
  const { tools } = data as { tools: readonly ListedTool[] }
  const found = tools.find((each) => each.name === tool)
  if (found) return found
  throw new ApiError(404, { message: `The server ${JSON.stringify(name)} lists no tool ${JSON.stringify(tool)}` })
}

/** The data of a tool for the page. */
function shown ({ kit, settings }: FastifyInstance, { params, principal }: Visit, tool: ListedTool): PageData {
  const { name: server = '' } = params
  const { name, title, description, overridden = false, enabled = true, inputSchema, annotations = {} } = tool
  const stored = settings.current.servers.get(server)
  const hints = Object.entries(hintsOf).flatMap(([hint, [yes, no]]) =>
    typeof annotations[hint] === 'boolean' ? [annotations[hint] ? yes : no] : [])
  return {
    title: title ?? name,
    tool: {
      name,
      server,
      serverHref: pageOf(kit.base, server),
      href: addressOf(kit.base, params),
      ...title !== undefined && { title },
      description,
      tokens: kit.costs.ofValue(tool),
      facts: [
        ...enabled ? [] : [['State', 'switched off: agents do not see it']],
        ...hints.length > 0 ? [['It says', hints.join(', ')]] : []
      ],
      isOverridden: overridden,
      canManage: stored !== undefined && canManage(principal, stored),
      schema: JSON.stringify(inputSchema, undefined, 2)
    }
  }
}

/** Texts for a tool's annotations, if true and if false. */
const hintsOf: Readonly<Record<string, readonly [string, string]>> = {
  readOnlyHint: ['it only reads', 'it changes things'],
  destructiveHint: ['it may destroy', 'it destroys nothing'],
  idempotentHint: ['it may be called again', 'a second call does more'],
  openWorldHint: ['it reaches other systems', 'it stays within its own']
}

/** The data of the page after a click on one of its buttons. */
interface Answer {
  readonly mode: 'form' | 'json'
  readonly json: string
  readonly values: Readonly<Record<string, string>>
  readonly errors: Readonly<Record<string, string>>
  readonly result?: object
}

async function answer (app: FastifyInstance, visit: Visit, tool: ListedTool): Promise<Answer> {
  const { args, ...read } = argumentsOf(app, visit.form, tool.inputSchema)
  return args === undefined ? read : { ...read, ...await call(app, visit, args) }
}

/** The content of a form for arguments. `args`: JSON text, if the tool is to be called. */
type Read = Omit<Answer, 'result'> & { readonly args?: string }

/** Reads a submitted form for arguments. @param schema the schema of the arguments */
export function argumentsOf (app: FastifyInstance, sent: Form, schema: unknown): Read {
  const form = app.kit.formOf(schema)
  const mode = textOf(sent.mode) === 'json' ? 'json' : 'form'
  const what = textOf(sent.do)
  const values = argumentsIn(sent)
  const text = textOf(sent.json)
  if (mode === 'json') {
    const args = objectIn(text, 'Arguments are')
    if (typeof args === 'string') return { mode, json: text, values, errors: { json: args } }
    return what === 'form'
      ? { mode: 'form', json: text, values: form.draft(args), errors: {} }
      : { mode, json: text, values, errors: {}, args: text.trim() === '' ? '{}' : text }
  }
  if (/^(?:add|remove|choose):/.test(what)) return { mode, json: '', values: form.change(values, what), errors: {} }
  const read = form.read(values)
  if ('errors' in read) return { mode, json: '', values, errors: read.errors }
  return what === 'json'
    ? { mode: 'json', json: JSON.stringify(JSON.parse(read.json), undefined, 2), values, errors: {} }
    : { mode, json: '', values, errors: {}, args: read.json }
}

/** Calls a tool as the signed-in user. The API's error message is shown above the form. */
async function call (
  { kit }: FastifyInstance, { request, params: { name = '', tool = '' } }: Visit, args: string
): Promise<{ result?: object, errors: Answer['errors'] }> {
  const begun = performance.now()
  try {
    const body = `{"toolName":${JSON.stringify(tool)},"arguments":${args.trim() === '' ? '{}' : args}}`
    const { data } = await kit.api.ask(request, 'POST', `/tools/call/${encodeURIComponent(name)}`, body)
    const isError = (data as { isError?: unknown }).isError === true
    return { errors: {}, result: { isError, ms: performance.now() - begun, blocks: kit.blocksOf(data) } }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { errors: { '': `${error.message}.` } }
  }
}
