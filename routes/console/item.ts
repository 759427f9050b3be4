import type { FastifyInstance } from 'fastify'
import { ApiError, type PageData } from '../../plugins/management/index.ts'
import { isIdentifiedByUri, type ItemKind } from '../../plugins/settings/index.ts'
import { type TrialRequest, runTrialAndShowResult } from './trial.ts'
import { type ArgumentsForm, readArgumentsForm } from './arguments.ts'
import { noticeOfAnswer, createPageRouter, formFieldText, revisionIn, type Visit } from './page.ts'
import { revisionOfRecord } from '../entity-tag.ts'
import { canManageServer, type ListedItem } from './server-head.ts'
import { serverPageUrl } from './server-states.ts'

/** An item of a server, as in a response of the management API. */
type ServerItem = ListedItem & { readonly [member: string]: unknown }

type Facts = ReadonlyArray<readonly [term: string, text: string]>

/** The properties of the pages for one kind of item, such as tools. */
interface ItemPages {
  readonly kind: ItemKind
  /** Returns the JSON Schema of the arguments, from which the form is created. */
  readonly schemaOf: (item: ServerItem) => unknown
  /** Returns further facts for the page, as pairs of a term and a text. */
  readonly factsOf: (item: ServerItem) => Facts
  /** The MCP method that runs an item, such as `tools/call`. */
  readonly method: string
  /** Returns the `params` of the MCP method as JSON text. @param args the arguments as JSON text */
  readonly paramsOf: (key: string, args: string) => string
}

/** Adds the page of a single item, the form that runs it, and the form that overrides it (on or off, description). */
export function addItemPages (app: FastifyInstance, pages: ItemPages): void {
  const { kit } = app
  const { page, form } = createPageRouter(app)
  const { kind, schemaOf, method, paramsOf } = pages
  const path = `/servers/:name/${kind}/:item`

  const emptyForm = async (visit: Visit): Promise<PageData> => {
    const item = await itemOf(app, visit, kind)
    const fields = kit.formOf(schemaOf(item)).fields({})
    return { ...toPageData(app, visit, item, pages), mode: 'form', json: '{}', fields }
  }
  page('item', { title: 'Item', path }, emptyForm)

  form(path, { effect: 'run' }, async (visit) => {
    const item = await itemOf(app, visit, kind)
    const schema = schemaOf(item)
    const { args, ...read } = readArgumentsForm(app, visit.form, schema)
    const fields = kit.formOf(schema).fields(read.values)
    await runTrialFromForm(app, visit, { ...toPageData(app, visit, item, pages), fields }, { args, ...read }, (json) =>
      ({ method, params: paramsOf(visit.params.item ?? '', json), tool: item }))
    return undefined
  })

  form(`${path}/override`, {
    effect: 'change', showAgain: async (visit) => ({ page: 'item', data: await emptyForm(visit), field: 'description' })
  }, async (visit) => {
    const { request, params, form: sent } = visit
    const revision = revisionIn(sent)
    if (revision !== undefined && revision !== revisionOfDescription(await itemOf(app, visit, kind))) {
      throw new ApiError(412, { code: 'TH_CHANGED_MEANWHILE' })
    }
    const item = itemUrlOf('', kind, params)
    const button = formFieldText(sent.do)
    const done = await (button === 'reset'
      ? kit.api.ask(request, 'DELETE', `${item}/description`)
      : button === 'on' || button === 'off'
        ? kit.api.ask(request, 'POST', `${item}/toggle`, { enabled: button === 'on' })
        : kit.api.ask(request, 'PUT', `${item}/description`, { description: formFieldText(sent.description) }))
    return { to: item, notice: noticeOfAnswer(done) }
  })
}

/**
 * Runs an item with the arguments in a submitted form, and responds with a page that shows the result. If the form must
 * be shown again instead, responds with it and its errors.
 * @param data the data of the page without the result
 * @param requestOf returns the MCP request. Its parameter `args`: the arguments as JSON text
 */
export async function runTrialFromForm (
  app: FastifyInstance,
  visit: Visit,
  data: PageData,
  { args, values: _values, ...read }: ArgumentsForm,
  requestOf: (args: string) => Omit<TrialRequest, 'server'>
): Promise<void> {
  const { reply, params: { name = '' } } = visit
  const { renderer } = app.kit
  if (args === undefined) {
    renderer.send(reply, 'item', { ...data, ...read }, Object.keys(read.errors).length > 0 ? 400 : 200)
    return
  }
  await runTrialAndShowResult(app, visit, { server: name, ...requestOf(args) }, 'item', { ...data, ...read })
}

const revisionOfDescription = ({ description = '' }: ServerItem): string => revisionOfRecord(description)

/** Returns the URL of an item's page. @param base the path of the console */
const itemUrlOf = (base: string, kind: string, { name = '', item = '' }: Visit['params']): string =>
  `${serverPageUrl(base, name)}/${kind}/${encodeURIComponent(item)}`

async function itemOf (
  { kit }: FastifyInstance, { request, params: { name = '', item = '' } }: Visit, kind: ItemKind
): Promise<ServerItem> {
  const { data } = await kit.api.ask(request, 'GET', `/servers/${encodeURIComponent(name)}`)
  const { [kind]: items } = data as Record<ItemKind, readonly ServerItem[]>
  const found = items.find((each) => (isIdentifiedByUri(kind) ? each.uri : each.name) === item)
  if (found) return found
  throw new ApiError(404, {
    message: `The server ${JSON.stringify(name)} does not list a ${kind.slice(0, -1)} ${JSON.stringify(item)}`
  })
}

/** Returns the data of an item for the page template. */
function toPageData (
  app: FastifyInstance, { params, principal }: Visit, item: ServerItem, { kind, schemaOf, factsOf }: ItemPages
): PageData {
  const { kit, gateway } = app
  const { name: server = '', item: key = '' } = params
  const { title, name, description, overridden = false, enabled = true } = item
  const listed = gateway.catalogues(server).flatMap(({ lists }) => lists[kind]).find((each) => each.key === key)
  const { frontmatter, ...asListed } = JSON.parse(listed?.text ?? '{}') as ServerItem & { frontmatter?: ServerItem }
  // The server's own description, without an override. For a skill, it is in the frontmatter of its SKILL.md.
  const own = kind === 'skills' ? frontmatter?.description : asListed.description
  const heading = title ?? name ?? key
  return {
    title: heading,
    kind: kind.slice(0, -1),
    revision: revisionOfDescription(item),
    stored: description ?? 'No description.',
    item: {
      name: key,
      heading,
      server,
      serverHref: `${serverPageUrl(kit.base, server)}?view=${kind}`,
      href: itemUrlOf(kit.base, kind, params),
      description,
      ...own !== undefined && { own },
      ...kind === 'tools' && { tokens: kit.costs.ofValue(item), schema: JSON.stringify(schemaOf(item), undefined, 2) },
      facts: factsOf(item),
      isOverridden: overridden,
      isEnabled: enabled,
      canManage: canManageServer(app, principal, server)
    }
  }
}
