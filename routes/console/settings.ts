import type { FastifyPluginAsync } from 'fastify'
import { SystemSections } from '../../schemas/system.ts'
import { revisionOf } from '../entity-tag.ts'
import { type Form, inSentence, noticeOf, numberOf, pagesOf, revisionIn, textOf, type Visit } from './page.ts'

/** The keywords of a schema that determine a form field. */
interface Schema {
  readonly type?: string
  readonly title?: string
  readonly description?: string
  readonly default?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly anyOf?: ReadonlyArray<{ readonly const?: unknown }>
  readonly enum?: readonly unknown[]
}

interface Setting {
  /** Its path in the system configuration, such as `routing.skipAuth`. */
  readonly path: string
  readonly schema: Schema
}

/** Page: the system configuration. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  const { page, form } = pagesOf(app)
  const show = async (
    { request, principal, form: sent }: Visit
  ): Promise<{ title: string, [member: string]: unknown }> => {
    // First: a change in between is found when the form is sent.
    const revision = revisionOf(app.system.get(principal))
    const current = await currentOf(request)
    return {
      title: 'Settings',
      revision,
      stored: storedBeside(sent, current),
      sections: sections.map(({ heading, text, settings }) =>
        ({ heading, text, fields: settings.map((setting) => fieldOf(setting, current.get(setting.path))) }))
    }
  }
  const currentOf = async (request: Visit['request']): Promise<Map<string, unknown>> => {
    const { data } = await kit.api.ask(request, 'GET', '/settings')
    const { systemConfig } = data as { systemConfig: Record<string, unknown> }
    return new Map(allSettings.map(({ path }) => {
      const [section = '', member] = path.split('.')
      const value = systemConfig[section]
      return [path, member === undefined ? value : (value as Record<string, unknown> | undefined)?.[member]]
    }))
  }

  page('settings', { title: 'Settings', isInNav: true }, show)
  form('/settings', {
    effect: 'change', again: async (visit) => ({ page: 'settings', data: await show(visit) })
  }, async ({ request, form: sent }) => {
    const changes = changesOf(sent, await currentOf(request))
    if (Object.keys(changes).length === 0) {
      return {
        to: '/settings', notice: { kind: 'done', text: 'Nothing was changed.' }
      }
    }
    return {
      to: '/settings', notice: noticeOf(await kit.api.ask(request, 'PUT', '/system-config', changes, revisionIn(sent)))
    }
  })
}
export default routes

const told: ReadonlyArray<readonly [section: string, heading: string, text: string]> = [
  ['routing', 'Routing', 'Which routes of MCP there are, and who gets in.'],
  ['install', 'Addresses', 'The public address of this gateway, and where packages of servers come from.'],
  ['smartRouting', 'Smart routing', 'How $smart finds tools: by words, and with an embeddings API by meaning, too.'],
  ['toolResultCompression', 'Compression', 'Long results are shortened; the original stays readable for the agent.'],
  ['oauthServer', 'OAuth', 'Whether applications may sign people in here.'],
  ['notifications', 'Notifications', 'A webhook that is told of approvals, changed definitions and used-up quotas.'],
  ['mcpRouter', 'Cloud catalogue', 'The access to the catalogue of MCPRouter.']
]

const propertiesOf = (schema: unknown): Readonly<Record<string, Schema>> => (schema as Schema).properties ?? {}

/** The settings of a section whose value fits one form field. */
const settingsOf = (section: string): Setting[] => {
  const schema = propertiesOf(SystemSections)[section]
  return Object.entries(propertiesOf(schema ?? {}))
    .filter(([, member]) => member.type !== 'array' && member.type !== 'object')
    .map(([member, own]) => ({ path: `${section}.${member}`, schema: own }))
}

const generalSettings: readonly Setting[] = Object.entries(propertiesOf(SystemSections))
  .filter(([, { properties }]) => properties === undefined)
  .map(([path, schema]) => ({ path, schema }))
const sections = [
  ...told.map(([section, heading, text]) => ({ heading, text, settings: settingsOf(section) })),
  {
    heading: 'Names and sessions',
    text: 'How items are named, and whether lost sessions are made anew.',
    settings: generalSettings
  }
]
const allSettings: readonly Setting[] = sections.flatMap(({ settings }) => settings)

const isSecret = (path: string): boolean => /(?:key|secret|dbUrl)$/i.test(path)

function valuesOf ({ anyOf, enum: values }: Schema): unknown[] | undefined {
  const constants = anyOf?.map((each) => each.const)
  return constants?.every((value) => value !== undefined) ? constants : values && [...values]
}

const inWords = (value: unknown): string =>
  value === true ? 'on' : value === false ? 'off' : value === undefined || value === '' ? 'none' : String(value)

function fieldOf ({ path, schema: { title = path, description, ...schema } }: Setting, current: unknown): object {
  const choices = schema.type === 'boolean' ? [true, false] : valuesOf(schema)
  const isHidden = isSecret(path) && choices === undefined
  const isStored = current !== undefined && current !== ''
  const help = description && inSentence(description.replaceAll('`', ''))
  const hidden = isStored ? 'A value is stored, and not shown. Left empty, it stays.' : 'No value is stored.'
  return {
    name: path,
    label: title,
    hint: [help, isHidden && hidden].filter(Boolean).join(' '),
    standard: isHidden ? undefined : inWords(schema.default),
    ...choices
      ? {
          options: choices.map((value) => ({
            value: String(value), text: inWords(value), isChosen: value === (current ?? schema.default)
          }))
        }
      : isHidden
        ? { type: 'password' }
        : { type: 'text', value: current === undefined ? '' : String(current) }
  }
}

/** The current values of the fields that have another text in the form: a line each. */
const storedBeside = (sent: Form, current: ReadonlyMap<string, unknown>): string =>
  Object.keys(changesOf(sent, current)).length === 0
    ? ''
    : allSettings.filter(({ path, schema }) => sent[path] !== undefined && !isSecret(path) &&
        textOf(sent[path]).trim() !== String(current.get(path) ?? schema.default ?? ''))
      .map(({ path, schema }) => `${path}: ${inWords(current.get(path) ?? schema.default)}`).join('\n')

/** The changes in a form: fields whose text differs from the current value. An empty field resets to the default. */
function changesOf (sent: Form, current: ReadonlyMap<string, unknown>): Record<string, unknown> {
  const changes: Record<string, unknown> = {}
  for (const { path, schema } of allSettings) {
    if (sent[path] === undefined) continue
    const text = textOf(sent[path]).trim()
    const value = current.get(path) ?? schema.default
    if (text === String(value ?? '') || (isSecret(path) && text === '')) continue
    const [section = '', member] = path.split('.')
    const read = text === '' ? null : valueOf(schema, text)
    if (member === undefined) changes[section] = read
    else changes[section] = { ...changes[section] as object | undefined, [member]: read }
  }
  return changes
}

/** Converts a text to the type of the schema. Any other text is sent unchanged, and the API reports the error. */
function valueOf ({ type }: Schema, text: string): unknown {
  if (type === 'boolean') return text === 'true'
  return type === 'integer' || type === 'number' ? numberOf(text) : text
}
