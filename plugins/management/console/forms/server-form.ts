import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../../../protocol/json.ts'
import { OpenApiSecurity } from '../../../../schemas/openapi-upstream.ts'
import { ServerConfig } from '../../../../schemas/server.ts'
import { transports, transportTypes, type TransportType } from '../../../../schemas/transports.ts'
import { type Draft, type Errors, type Field, hasTypedFields, join } from './draft.ts'
import { namesIn } from './names.ts'
import { argumentsField, SchemaForm } from './schema-form.ts'

type Config = Readonly<Record<string, unknown>>
type Member = keyof typeof ServerConfig.properties

/** The members of a config that locate its server, by kind of location. */
const locationMembers = {
  command: { first: ['command', 'args', 'env', 'cwd'], more: ['startOnDemand', 'idleTimeoutMs'] },
  address: {
    first: ['url', 'headers'],
    more: ['passthroughHeaders', 'oauth', 'proxy', 'enableKeepAlive', 'keepAliveInterval']
  },
  description: {
    first: ['openapi', 'url', 'headers'],
    more: ['passthroughHeaders', 'proxy', 'enableKeepAlive', 'keepAliveInterval']
  }
} as const satisfies Readonly<Record<string, Record<'first' | 'more', readonly Member[]>>>

/** Members of every config. `enabled` and the overrides have their own forms; the gateway sets the rest. */
const common = {
  last: ['description', 'visibility', 'sharedWithUsers'], more: ['isolation', 'pin', 'options']
} as const

/** Members that are lists of names. One field of such a list may contain several names; empty ones are dropped. */
const nameLists: readonly string[] = ['sharedWithUsers', 'passthroughHeaders']

/** Members of an OpenAPI server's credentials that repeat other members in another notation. */
const repeatedMembers = ['apiKey', 'http', 'oauth2', 'openIdConnect'] as const

/**
 * A form for the config of a server of one type. Members that the form does not show are kept, including nested ones.
 */
export class ServerForm {
  readonly type: TransportType
  readonly #isAdmin: boolean
  readonly #schema: { readonly properties: Readonly<Record<string, unknown>>, readonly required: readonly string[] }
  readonly #form: SchemaForm
  readonly #more: ReadonlySet<string>

  /** @param config its type determines the fields of the form @param isAdmin whether the form has the field `owner` */
  constructor (config: Config, isAdmin: boolean) {
    const type = formTypeOf(config)
    const { first, more } = locationMembers[transports[type].locatedBy]
    const rest: readonly Member[] = [...isAdmin ? ['owner'] as const : [], ...common.more, ...more]
    const shown: readonly Member[] = ['type', ...first, ...common.last, ...rest]
    this.type = type
    this.#isAdmin = isAdmin
    this.#more = new Set(rest.map((name) => join(argumentsField, name)))
    this.#schema = {
      properties: Object.fromEntries(shown.map((name) => [name, schemaOf(name)])),
      required: first.filter((name) => name === 'command' || (name === 'url' && type !== 'openapi'))
    }
    this.#form = new SchemaForm(this.#schema)
  }

  /** Returns the fields in two groups: the important ones, and the others. */
  fields (draft: Draft): { first: Field[], more: Field[] } {
    const fields = this.#form.fields(draft).map((field) => toShown(field, draft))
    return {
      first: fields.filter(({ name }) => !this.#more.has(name)), more: fields.filter(({ name }) => this.#more.has(name))
    }
  }

  /** Returns the values of the form for a config; undefined if the form cannot represent it without loss. */
  draft (config: Config): Draft | undefined {
    const draft = this.#form.draft(config)
    const read = this.#form.read(draft)
    return 'json' in read && isSame(this.#merged(read.json, config), config) ? draft : undefined
  }

  change (draft: Draft, what: string): Draft { return this.#form.change(draft, what) }

  /**
   * Returns the config from a submitted form.
   * @param base the config whose other members are kept
   * @param stored the stored config: if its type changes, the members of the former type are dropped
   */
  read (draft: Draft, base: Config, stored: Config): { readonly config: Config } | { readonly errors: Errors } {
    const read = this.#form.read(draft)
    if ('errors' in read) return read
    const config = withNames(this.#merged(read.json, base))
    const type = formTypeOf(config)
    return { config: type === formTypeOf(stored) ? config : ofType(config, type) }
  }

  /**
   * Returns the form of the type that a draft selects, which may be another one, with its values. `base` also contains
   * the values of the draft, so that nothing is lost if the former type is selected again.
   */
  switchType (draft: Draft, base: Config): { readonly form: ServerForm, readonly draft: Draft, readonly base: Config } {
    const read = this.#form.read(draft)
    const all = 'errors' in read ? base : this.#merged(read.json, base)
    const type = transportTypes[Number(draft[join(argumentsField, 'type')] || NaN)]
    const form = new ServerForm(type === undefined ? all : { type }, this.#isAdmin)
    return { form, draft: form.type === this.type ? draft : { ...form.#form.draft(all), ...draft }, base: all }
  }

  #merged (json: string, base: Config): Config { return mergeTyped(base, JSON.parse(json) as Config, this.#schema) }

  /**
   * Maps messages by members of the config, such as `config.env.HOME`, to fields. A message about the config as a whole
   * is shown at the first member that it names in quotes.
   */
  errors (fields: Errors, draft: Draft): Errors {
    const shown = (path: string): string | undefined => this.#fieldOf(path, draft)
    return Object.fromEntries(Object.entries(fields).map(([path, text]) => {
      const quoted = [...text.matchAll(/"([\w.]{1,100})"/g)].map(([, member = '']) => member)
      const member = path.replace(/^config(?:\.|$)/, '')
      const places = member === '' ? quoted : [member]
      return [places.map(shown).find((field) => field !== undefined) ?? '', member === '' ? text : `${member}: ${text}`]
    }))
  }

  #fieldOf (path: string, draft: Draft): string | undefined {
    const [member = '', ...rest] = path.split('.')
    if (!Object.hasOwn(this.#schema.properties, member)) return undefined
    const root = join(argumentsField, member)
    const ofEntry = Object.keys(draft).find((name) => name.startsWith(`${root}/`) && name.endsWith('/name') &&
      draft[name] === rest.join('.'))
    const names = fieldNamesIn(this.#form.fields(draft))
    const inner = rest.reduce((name, part) => names.has(join(name, part)) ? join(name, part) : name, root)
    return ofEntry?.replace(/name$/, 'value') ?? inner
  }
}

/** Returns the type whose form shows a config. */
const formTypeOf = ({ type, command, openapi }: Config): TransportType =>
  transportTypes.find((each) => each === type) ??
    (openapi !== undefined ? 'openapi' : command !== undefined ? 'stdio' : 'streamable-http')

/** Omits the members of other types from a config. */
function ofType (config: Config, type: TransportType): Config {
  const { first, more } = locationMembers[transports[type].locatedBy]
  const own = new Set<string>([...first, ...more])
  const others = new Set<string>(Object.values(locationMembers).flatMap((each) => [...each.first, ...each.more]))
  return Object.fromEntries(Object.entries(config).filter(([name]) => own.has(name) || !others.has(name)))
}

/** Returns the part of a config member's schema that the form shows. */
function schemaOf (name: Member): unknown {
  const schema = ServerConfig.properties[name]
  if (name !== 'openapi') return schema
  const { schema: _description, ...openapi } = ServerConfig.properties.openapi.properties
  const security = Object.fromEntries(Object.entries(OpenApiSecurity.properties)
    .filter(([each]) => !repeatedMembers.some((other) => other === each)))
  return { ...schema, properties: { ...openapi, security: { ...openapi.security, properties: security } } }
}

/** Collapses optional objects without values, and removes the backticks from hints, at each level. */
const toShown = (field: Field, draft: Draft): Field => ({
  ...field,
  ...field.hint !== undefined && { hint: field.hint.replaceAll('`', '') },
  ...field.kind === 'object' && !field.isRequired && { isFolded: !hasTypedFields(draft, field.name) },
  ...field.fields && { fields: field.fields.map((each) => toShown(each, draft)) }
})

/** Returns the names of all fields, including nested ones. */
const fieldNamesIn = (fields: readonly Field[]): Set<string> =>
  new Set(fields.flatMap((field) => [field.name, ...fieldNamesIn([...field.fields ?? [], ...field.items ?? []])]))

/**
 * Replaces the members of a config that the form has fields for, at each level; other members are kept.
 * @param properties of the schema that the form is made from
 */
function mergeTyped (base: Config, typed: Config, { properties }: { readonly properties: Config }): Config {
  const result: Record<string, unknown> = { ...base }
  for (const [name, schema] of Object.entries(properties)) {
    const [former, value] = [base[name], typed[name]]
    const inner = isObject(schema) && isObject(schema.properties)
      ? mergeTyped(isObject(former) ? former : {}, isObject(value) ? value : {}, { properties: schema.properties })
      : value
    const isEmpty = value === undefined && isObject(inner) && Object.keys(inner).length === 0
    if (inner === undefined || isEmpty) delete result[name]
    else result[name] = inner
  }
  return result
}

/** Returns a config whose lists of names have one name per entry, without empty entries. */
const withNames = (config: Config): Config =>
  Object.fromEntries(Object.entries(config).flatMap(([member, value]) => {
    const isNames = nameLists.includes(member) && Array.isArray(value)
    if (!isNames) return [[member, isObject(value) ? withNames(value) : value]]
    const names = namesIn(value.join('\n'))
    return names.length === 0 ? [] : [[member, names]]
  }))

/** Whether two configs are equal, ignoring empty members. */
const isSame = (one: Config, other: Config): boolean => isDeepStrictEqual(withoutEmpty(one), withoutEmpty(other))

function withoutEmpty (value: unknown): unknown {
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withoutEmpty(each)] as const)
    .filter(([, each]) => each !== '' && each !== undefined &&
      !(typeof each === 'object' && each !== null && Object.keys(each).length === 0)))
}
