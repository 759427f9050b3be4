import type { Static } from '@sinclair/typebox'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { namesHint, namesIn } from '../../plugins/management/index.ts'
import type { PromptRecord, ResourceRecord } from '../../schemas/builtins.ts'
import type { SkillRecord } from '../../schemas/skills.ts'
import { revisionOfRecord } from '../entity-tag.ts'
import {
  parseEnabledUpdate, type SubmittedForm, createPageRouter, createRemoveAction, formFieldText, createToggleAction,
  type Visit
} from './page.ts'
import { paginate } from './lists.ts'
import { addUploadForm } from './uploads.ts'
import { abortSignalOf } from '../caller.ts'

type StoredBuiltIn = Pick<Static<typeof PromptRecord>, 'id' | 'name' | 'enabled'> &
  Partial<Static<typeof PromptRecord> & Static<typeof ResourceRecord> & SkillRecord>

/** The kinds of built-in items, with the fields of their forms. */
const kinds = {
  prompts: {
    noun: 'prompt',
    heading: 'Prompts',
    fields: [
      { name: 'name', label: 'Name', required: true },
      { name: 'title', label: 'Title', hint: 'Shown to people.' },
      { name: 'description', label: 'Description', hint: 'When to use it.' },
      {
        name: 'template',
        label: 'Text',
        type: 'textarea',
        isProse: true,
        required: true,
        hint: '{{name}} stands for the argument with that name.'
      },
      {
        name: 'arguments',
        label: 'Arguments',
        hint: `Names ${namesHint}; mark required ones with *: language, code*`
      }
    ]
  },
  resources: {
    noun: 'resource',
    heading: 'Resources',
    fields: [
      { name: 'uri', label: 'URI', required: true, hint: 'Such as note://house/rules' },
      { name: 'name', label: 'Name' },
      { name: 'description', label: 'Description' },
      { name: 'mimeType', label: 'Media type', hint: 'Such as text/markdown' },
      { name: 'content', label: 'Content', type: 'textarea', required: true }
    ]
  },
  skills: {
    noun: 'skill',
    heading: 'Skills',
    fields: [
      {
        name: 'content',
        label: 'SKILL.md',
        type: 'textarea',
        required: true,
        hint: 'Starts with name and description, between two lines of three hyphens.'
      },
      {
        name: 'routes',
        label: 'Routes',
        hint: `Names of groups ${namesHint}; /mcp is the global route.`
      }
    ]
  }
} as const
type Kind = keyof typeof kinds
const kindNames = Object.keys(kinds) as Kind[]

/** The titles of the second column of each table. */
const secondColumnTitles = { prompts: 'Arguments', resources: 'Media type', skills: 'Routes' } as const

/** The page with the built-in prompts, resources and skills. */
export const builtInsPages: FastifyPluginAsync = async (app) => {
  const { base } = app.kit
  createPageRouter(app).page('built-ins', { title: 'Built-ins', isInNav: true }, async (visit) => ({
    parts: await Promise.all(kindNames.map(async (kind) => {
      const { noun, heading } = kinds[kind]
      const { items, pages } = paginate(await listOf(app, visit, kind), `${base}/built-ins`, {})
      return {
        id: kind,
        heading,
        empty: `The gateway has no ${kind} of its own.`,
        caption: heading,
        unit: pages.total === 1 ? noun : kind,
        pages,
        columns: [
          { title: heading.slice(0, -1) }, { title: secondColumnTitles[kind] }, { title: 'Change', isHidden: true }
        ],
        rows: items.map((item) => rowOf(app, kind, item, visit.principal.isAdmin))
      }
    }))
  }))
}

/** The pages and forms that add, change and remove built-in items, for admins. */
export const builtInsAdminPages: FastifyPluginAsync = async (app) => {
  const { builtIns, kit: { base, api, renderer } } = app
  const { page, form, edit, removal, submit } = createPageRouter(app)
  const uploadPage = { title: 'Upload a skill', lead: 'Agents that support skills get it.' }
  page('skill-upload', { title: uploadPage.title, path: '/built-ins/skills/upload' }, () => uploadPage)
  await addUploadForm(app, {
    path: '/built-ins/skills/upload',
    field: 'skillFile',
    receive: async (request, file, reply) => {
      const target = { url: '/skills/upload', field: 'skillFile' }
      const { data } = await api.upload(request, target, file, abortSignalOf(reply))
      return reply.redirect(`${base}/built-ins/skills/${encodeURIComponent((data as StoredBuiltIn).id)}`, 303)
    },
    refuse: (_request, reply, error) => renderer.send(reply, 'skill-upload', {
      ...uploadPage, errors: { skillFile: error.message.replace(/^"skillFile": /, '') }
    }, error.statusCode)
  })
  for (const kind of kindNames) {
    const { noun, fields } = kinds[kind]
    const crumbs = [{ label: 'Built-ins', href: `${base}/built-ins` }]
    const common = { crumbs, cancel: `${base}/built-ins` }
    const newPage = {
      ...common,
      title: `Add a ${noun}`,
      lead: kind === 'skills' ? 'Agents that support skills get it.' : 'Every agent gets it.',
      action: `${base}/built-ins/${kind}`,
      submit: `Add the ${noun}`,
      fields: fields.map((field) => field.name === 'routes' ? { ...field, value: globalRoute } : field)
    }
    const [list, path, apiPath] = [`/built-ins/${kind}`, `/built-ins/${kind}/:id`, `/${kind}/:id`]
    edit('form', { title: newPage.title, path: `${list}/new`, action: list }, () => newPage, async (visit) =>
      await submit(visit, '/built-ins', 'POST', `/${kind}`, toRequestBody(kind, visit.form)))

    const pageOf = (id: string): string => `${base}${list}/${encodeURIComponent(id)}`
    const itemOf = async ({ params: { id = '' }, request }: Visit): Promise<StoredBuiltIn> =>
      (await api.ask(request, 'GET', `/${kind}/${encodeURIComponent(id)}`)).data as StoredBuiltIn
    edit('form', { title: noun, path }, async (visit) => {
      const { id = '' } = visit.params
      const item = await itemOf(visit)
      return {
        ...common,
        title: item.title ?? item.name,
        revision: revisionOfRecord(builtIns[kind].get(id)),
        stored: JSON.stringify(item, undefined, 2),
        lead: undefined,
        action: pageOf(id),
        submit: 'Save',
        fields: fields.map((field) => ({ ...field, value: toFieldText(app, item, field.name) })),
        buttons: [{ ...createRemoveAction(pageOf(id)), icon: 'trash-2' }]
      }
    }, async (visit) => await submit(
      visit, '/built-ins', 'PUT', apiPath, toRequestBody(kind, visit.form, (await itemOf(visit)).arguments)
    ))
    form(`${path}/toggle`, { effect: 'change' }, async (visit) =>
      await submit(visit, '/built-ins', 'PUT', apiPath, parseEnabledUpdate(visit.form)))
    removal(path, '/built-ins', async (visit) => {
      const { title, name } = await itemOf(visit)
      return {
        name: title ?? name,
        crumbs,
        consequences: [`Agents no longer find this ${noun}.`],
        cancel: pageOf(visit.params.id ?? '')
      }
    }, async (visit) => await submit(visit, '/built-ins', 'DELETE', apiPath))
  }
}

const listOf = async ({ kit }: FastifyInstance, { request }: Visit, kind: Kind): Promise<readonly StoredBuiltIn[]> =>
  (await kit.api.ask(request, 'GET', `/${kind}`)).data as readonly StoredBuiltIn[]

function rowOf (app: FastifyInstance, kind: Kind, item: StoredBuiltIn, isAdmin: boolean): object {
  const href = `${app.kit.base}/built-ins/${kind}/${encodeURIComponent(item.id)}`
  return {
    isFaint: !item.enabled,
    cells: [
      {
        text: item.title ?? item.name,
        under: item.description ?? item.uri,
        ...isAdmin && { href },
        tags: item.enabled ? [] : ['off']
      },
      secondCellOf(app, kind, item),
      {
        actions: isAdmin ? [createToggleAction(href, item.enabled)] : []
      }
    ]
  }
}

function secondCellOf (app: FastifyInstance, kind: Kind, item: StoredBuiltIn): string {
  switch (kind) {
    case 'prompts': return (item.arguments ?? []).map(({ name }) => name).join(', ') || 'none'
    case 'resources': return item.mimeType ?? 'not stated'
    case 'skills': return routesOf(app, item) || 'none'
  }
}

const globalRoute = '/mcp'

/** Returns the MCP routes that list a skill as text for its form field: `/mcp` and names of groups. */
const routesOf = ({ settings }: FastifyInstance, { global = false, groups = [] }: StoredBuiltIn): string =>
  [...global ? [globalRoute] : [], ...groups.map((id) => settings.current.groups.get(id)?.name ?? id)].join(', ')

function toFieldText (app: FastifyInstance, item: StoredBuiltIn, field: string): string {
  if (field === 'routes') return routesOf(app, item)
  if (field === 'arguments') return (item.arguments ?? []).map(toArgumentText).join('\n')
  return String((item as unknown as Record<string, unknown>)[field] ?? '')
}

/** Returns the text of a prompt's argument in the form: its name, with `*` if it is required. */
const toArgumentText = ({ name, required }: NonNullable<StoredBuiltIn['arguments']>[number]): string =>
  `${name}${required === true ? '*' : ''}`

/**
 * Converts a form to a request body for the API. An empty optional text becomes null, which removes the stored value.
 * @param stored the stored arguments of a prompt: titles and descriptions stay, and lines left as they were shown
 */
function toRequestBody (kind: Kind, sent: SubmittedForm, stored: StoredBuiltIn['arguments'] = []): object {
  return Object.fromEntries(kinds[kind].fields.flatMap((field): Array<[string, unknown]> => {
    const text = formFieldText(sent[field.name])
    if (field.name === 'arguments') {
      return [[field.name, namesIn(text, true, stored.map(toArgumentText)).map((each) => {
        const unchanged = stored.find((former) => toArgumentText(former) === each)
        if (unchanged) return unchanged
        const name = each.replace(/\*$/, '')
        return { ...stored.find((former) => former.name === name), name, required: each.endsWith('*') || undefined }
      })]]
    }
    if (field.name === 'routes') {
      const words = namesIn(text, true)
      return [['global', words.includes(globalRoute)], ['groups', words.filter((each) => each !== globalRoute)]]
    }
    return [[field.name, text === '' && !('required' in field) ? null : text]]
  }))
}
