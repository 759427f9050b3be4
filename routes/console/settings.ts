import type { FastifyPluginAsync } from 'fastify'
import { SystemSections } from '../../schemas/system.ts'
import { ApiError } from '../../plugins/management/index.ts'
import { revisionOfRecord } from '../entity-tag.ts'
import { type SubmittedForm, toSentence, toNumberOrText, createPageRouter, formFieldText, type Visit } from './page.ts'

/** The JSON Schema keywords that determine the form field of a setting. */
interface Schema {
  readonly type?: string
  readonly title?: string
  readonly description?: string
  readonly default?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly anyOf?: ReadonlyArray<{ readonly const?: unknown }>
  readonly enum?: readonly unknown[]
}

/** One setting of the system configuration. */
interface Setting {
  /** The path in the system configuration, such as `routing.skipAuth`. */
  readonly path: string
  readonly schema: Schema
}

/** The page on which the system configuration is changed. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  const { edit, submit } = createPageRouter(app)
  edit('settings', { title: 'Settings', isInNav: true }, async ({ request, principal, form: sent }) => {
    // The revision is computed before the values are read. If they change in between, the API rejects the form.
    const revision = revisionOfRecord(app.system.get(principal))
    const current = await currentOf(request)
    return {
      title: 'Settings',
      revision,
      // Only the names are needed: the API's errors are assigned to fields by name.
      fields: allSettings.map(({ path }) => ({ name: path })),
      stored: storedDifferences(sent, current),
      sections: sections.map(({ heading, text, settings }) =>
        ({ heading, text, fields: settings.map((setting) => fieldOf(setting, current.get(setting.path))) }))
    }
  }, async (visit) => {
    const changes = changesOf(visit.form, await currentOf(visit.request))
    return Object.keys(changes).length === 0
      ? { to: '/settings', notice: { kind: 'done', text: 'No changes.' } }
      : await submit(visit, '/settings', 'PUT', '/system-config', changes)
  })
  const currentOf = async (request: Visit['request']): Promise<Map<string, unknown>> => {
    const { data } = await kit.api.ask(request, 'GET', '/system-config')
    const systemConfig = data as Record<string, unknown>
    return new Map(allSettings.map(({ path }) => {
      const [section = '', member] = path.split('.')
      const value = systemConfig[section]
      return [path, member === undefined ? value : (value as Record<string, unknown> | undefined)?.[member]]
    }))
  }
}
export default routes

/** The headings and introductions of the sections, in their order on the page. */
const sectionTexts: ReadonlyArray<readonly [section: string, heading: string, text: string]> = [
  ['routing', 'Routing', 'The MCP routes, and who can use them.'],
  ['install', 'Addresses', 'The public address of this gateway, and the package sources for servers.'],
  ['smartRouting', 'Smart routing', 'How $smart finds tools: by words and, with an embeddings API, by meaning.'],
  ['toolResultCompression', 'Compression', 'Long results are shortened; the original stays readable for the agent.'],
  ['oauthServer', 'OAuth', 'Whether people can sign in to applications here.'],
  ['notifications', 'Notifications', 'A webhook for approvals, changed definitions and used-up quotas.'],
  ['mcpRouter', 'Cloud catalogue', 'Access to the MCPRouter catalogue.']
]

const propertiesOf = (schema: unknown): Readonly<Record<string, Schema>> => (schema as Schema).properties ?? {}

/** Returns the settings of a section of the system configuration. */
const settingsOf = (section: string): Setting[] => {
  const schema = propertiesOf(SystemSections)[section]
  return Object.entries(propertiesOf(schema ?? {}))
    .map(([member, own]) => ({ path: `${section}.${member}`, schema: own }))
}

/** The settings that are not in a section. */
const generalSettings: readonly Setting[] = Object.entries(propertiesOf(SystemSections))
  .filter(([, { properties }]) => properties === undefined)
  .map(([path, schema]) => ({ path, schema }))
const sections = [
  ...sectionTexts.map(([section, heading, text]) => ({ heading, text, settings: settingsOf(section) })),
  {
    heading: 'Names and sessions',
    text: 'How items are named, and whether lost sessions are restored.',
    settings: generalSettings
  }
]
const allSettings: readonly Setting[] = sections.flatMap(({ settings }) => settings)

/** Whether a setting is a secret, judged by its name. A secret is not shown, unless the schema lists its values. */
const isSecret = (path: string): boolean => /(?:key|secret|dbUrl)$/i.test(path)

/** Returns the allowed values of a setting; undefined if the schema does not list them. */
function valuesOf ({ anyOf, enum: values }: Schema): unknown[] | undefined {
  const constants = anyOf?.map((each) => each.const)
  return constants?.every((value) => value !== undefined) ? constants : values && [...values]
}

/** Whether the form field of a setting contains JSON. */
const isJson = ({ type }: Schema): boolean => type === 'array' || type === 'object'

/** Returns a value as a text for people, such as `on` for true. */
const inWords = (value: unknown): string =>
  value === true ? 'on' : value === false ? 'off' : value === undefined || value === '' ? 'none' : textIn(value)

/** Returns a value as the text of a form field. @param indent the indentation of JSON, in spaces */
const textIn = (value: unknown, indent?: number): string =>
  typeof value === 'object' ? JSON.stringify(value, undefined, indent) : String(value ?? '')

function fieldOf ({ path, schema: { title = path, description, ...schema } }: Setting, current: unknown): object {
  const choices = schema.type === 'boolean' ? [true, false] : valuesOf(schema)
  const isHidden = isSecret(path) && choices === undefined
  const isStored = current !== undefined && current !== ''
  const help = description && toSentence(description.replaceAll('`', ''))
  const hidden = isStored ? 'A value is stored but not shown. Leave empty to keep it.' : 'No value is stored.'
  return {
    name: path,
    label: title,
    hint: [help, isHidden && hidden, isJson(schema) && 'As JSON.'].filter(Boolean).join(' '),
    standard: isHidden ? undefined : inWords(schema.default),
    ...choices
      ? {
          options: choices.map((value) => ({
            value: String(value), text: inWords(value), isChosen: value === (current ?? schema.default)
          }))
        }
      : isHidden
        ? { type: 'password' }
        : isJson(schema)
          ? { type: 'textarea', rows: 4, value: textIn(current, 2) }
          : { type: 'text', value: textIn(current) }
  }
}

/** Returns the stored values of the fields whose submitted text differs, one per line. Secrets are left out. */
const storedDifferences = (sent: SubmittedForm, current: ReadonlyMap<string, unknown>): string =>
  allSettings
    .filter(({ path, schema }) => sent[path] !== undefined && !isSecret(path) &&
      fieldTextOf(sent[path]) !== textIn(current.get(path) ?? schema.default, 2))
    .map(({ path, schema }) => `${path}: ${inWords(current.get(path) ?? schema.default)}`).join('\n')

/**
 * Returns the changes in a submitted form as a request body for the API. It contains the settings whose text differs
 * from the current value. An empty field becomes null, which resets the setting to its default; an empty field of a
 * secret is left out, so that the secret is kept.
 */
function changesOf (sent: SubmittedForm, current: ReadonlyMap<string, unknown>): Record<string, unknown> {
  const changes: Record<string, unknown> = {}
  for (const { path, schema } of allSettings) {
    if (sent[path] === undefined) continue
    const text = fieldTextOf(sent[path])
    const value = current.get(path) ?? schema.default
    if (text === textIn(value, 2) || (isSecret(path) && text === '')) continue
    const [section = '', member] = path.split('.')
    const read = text === '' ? null : valueOf(path, schema, text)
    if (member === undefined) changes[section] = read
    else changes[section] = { ...changes[section] as object | undefined, [member]: read }
  }
  return changes
}

/** Returns the trimmed text of a form field, with `\n` as line ends. */
const fieldTextOf = (field: SubmittedForm[string]): string => formFieldText(field).trim()

/**
 * Converts the text of a field to the type in the schema of the setting. If a number is expected, text that is not a
 * whole number is returned unchanged, so that the API reports the error.
 * @throws ApiError for invalid JSON
 */
function valueOf (path: string, schema: Schema, text: string): unknown {
  const { type } = schema
  if (isJson(schema)) {
    try {
      return JSON.parse(text) as unknown
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw new ApiError(400, { message: `"${path}": This is not JSON: ${reason}.` })
    }
  }
  if (type === 'boolean') return text === 'true'
  return type === 'integer' || type === 'number' ? toNumberOrText(text) : text
}
