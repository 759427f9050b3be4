import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { UriTemplate } from '@modelcontextprotocol/sdk/shared/uriTemplate.js'
import { ApiError, managementLimits, type PageData } from '../../plugins/management/index.ts'
import { addItemPages, runTrialFromForm } from './item.ts'
import { createPageRouter, type Visit } from './page.ts'
import { readArgumentsForm } from './arguments.ts'
import { serverPageUrl } from './server-states.ts'
import { isPlainObject } from '../../schemas/unknown-members.ts'

/** A resource template as listed by its server. */
interface Template {
  readonly uriTemplate: string
  readonly name?: string
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
}

/**
 * The pages of a resource, with its override and a form that reads it; and of a resource template, with a form that
 * fills in and reads it.
 */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  addItemPages(app, {
    kind: 'resources',
    schemaOf: () => ({ type: 'object' }),
    factsOf: ({ mimeType, size }) => [
      ...typeof mimeType === 'string' ? [['Type', mimeType] as const] : [],
      ...typeof size === 'number' ? [['Size', `${size.toLocaleString('en')} bytes`] as const] : []
    ],
    method: 'resources/read',
    paramsOf: (uri) => JSON.stringify({ uri })
  })

  const { page, form } = createPageRouter(app)
  const path = '/servers/:name/templates/:item'
  page('item', { title: 'Template', path }, async (visit) => {
    const template = await templateOf(app, visit)
    const fields = kit.formOf(schemaOf(template)).fields({})
    return { ...toPageData(app, visit, template), mode: 'form', json: '{}', fields }
  })
  form(path, { effect: 'run' }, async (visit) => {
    const template = await templateOf(app, visit)
    const schema = schemaOf(template)
    const read = readArgumentsForm(app, visit.form, schema)
    const data = { ...toPageData(app, visit, template), fields: kit.formOf(schema).fields(read.values) }
    await runTrialFromForm(app, visit, data, read, (args) => {
      const values = Object.entries(JSON.parse(args) as Record<string, unknown>)
        .map(([name, value]) => [name, String(value)] as const)
      const uri = new UriTemplate(template.uriTemplate).expand(Object.fromEntries(values))
      return { method: 'resources/read', params: JSON.stringify({ uri }) }
    })
    return undefined
  })
}
export default routes

/**
 * Requests the resource templates of a server as the signed-in user. Returns only the templates for which a form can
 * be made; none if the server does not respond.
 */
export async function fetchResourceTemplates (
  { kit }: FastifyInstance, { request, principal }: Pick<Visit, 'request' | 'principal'>, server: string
): Promise<Template[]> {
  const viewer = { username: principal.username ?? '' }
  const { result } =
    await kit.mcp.ask(request, `/mcp/${encodeURIComponent(server)}`, viewer, 'resources/templates/list', '{}')
  const templates = (result?.resourceTemplates ?? []) as readonly unknown[]
  return templates.filter((each): each is Template & Record<string, unknown> =>
    isPlainObject(each) && typeof each.uriTemplate === 'string' && isExpandable(each.uriTemplate))
}

/** Whether a URI template is valid, and has variables but not too many for a form. */
function isExpandable (template: string): boolean {
  try {
    const { size } = new Set(new UriTemplate(template).variableNames)
    return size > 0 && size <= managementLimits.console.templateVariables
  } catch {
    return false
  }
}

async function templateOf (app: FastifyInstance, visit: Visit): Promise<Template> {
  const { name = '', item = '' } = visit.params
  app.servers.get(visit.principal, name)
  const found = (await fetchResourceTemplates(app, visit, name)).find(({ uriTemplate }) => uriTemplate === item)
  if (found) return found
  throw new ApiError(404, {
    message: `The server ${JSON.stringify(name)} does not list a template ${JSON.stringify(item)}`
  })
}

function schemaOf ({ uriTemplate }: Template): object {
  const names = [...new Set(new UriTemplate(uriTemplate).variableNames)]
  // Variables of query expressions (`{?name}`, RFC 6570) may be omitted.
  const optional = new Set([...uriTemplate.matchAll(/\{[?&]([^{}]*)\}/g)].flatMap(([, list = '']) =>
    list.split(',').map((name) => name.replace('*', '').trim())))
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
    required: names.filter((name) => !optional.has(name))
  }
}

/** Returns the data of a resource template for the page template. */
function toPageData ({ kit: { base } }: FastifyInstance, { params }: Visit, template: Template): PageData {
  const { name: server = '', item = '' } = params
  const { name, title = name ?? item, description, mimeType } = template
  return {
    title,
    kind: 'template',
    item: {
      name: item,
      heading: title,
      server,
      serverHref: `${serverPageUrl(base, server)}?view=resources`,
      href: `${serverPageUrl(base, server)}/templates/${encodeURIComponent(item)}`,
      description,
      facts: mimeType === undefined ? [] : [['Type', mimeType]],
      isOverridden: false,
      isEnabled: true,
      canManage: false
    }
  }
}
