import { isObject } from '../../../../protocol/json.ts'
import { bodyFormatOf, isHeaderName } from '../http-syntax.ts'
import {
  DescriptionError, type Parameter, type ParameterLocation, type Serialization, type SerializationStyle
} from '../plan.ts'
import type { JsonSchema } from './keywords.ts'
import { type ArgumentNames, descriptionWithRequestName } from './names.ts'
import type { SchemaConverter } from './schema.ts'

const locations: readonly ParameterLocation[] = ['path', 'query', 'header', 'cookie']
const isLocation = (value: unknown): value is ParameterLocation => locations.includes(value as ParameterLocation)

/**
 * The styles that each location allows, the default first. `tabDelimited`, and delimited styles in paths and headers,
 * occur only in Swagger 2.0.
 */
const styles: Readonly<Record<ParameterLocation, readonly SerializationStyle[]>> = {
  path: ['simple', 'label', 'matrix', 'spaceDelimited', 'pipeDelimited', 'tabDelimited'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject', 'tabDelimited'],
  header: ['simple', 'spaceDelimited', 'pipeDelimited', 'tabDelimited'],
  cookie: ['form']
}

/**
 * Headers that parameters cannot set: OpenAPI ignores parameters with the first three names. The others belong to the
 * connection or the message framing, or carry credentials.
 */
const reservedHeaders = new Set([
  'accept', 'content-type', 'authorization', 'host', 'connection', 'content-length', 'transfer-encoding',
  'keep-alive', 'upgrade', 'te', 'trailer', 'expect', 'proxy-authorization', 'cookie'
])

/** A Parameter Object with its reference resolved. */
type ParameterObject = Readonly<Record<string, unknown>>

/** The plan of a parameter, and the schema of its argument. */
interface DescribedParameter { parameter: Parameter, schema: JsonSchema }

/**
 * An operation's parameters. `path`: its path template; `unplaced`: path parameters that the template does not contain.
 */
interface DescribedParameters { path: string, parameters: DescribedParameter[], unplaced: string[] }

/**
 * Describes the parameters of an operation, ordered by location. A name in the path template for which no parameter is
 * declared becomes a string parameter.
 * @throws DescriptionError for an invalid parameter
 */
export function describeParameters (
  given: readonly ParameterObject[],
  template: string,
  names: ArgumentNames,
  schemas: SchemaConverter
): DescribedParameters {
  // In YAML, a name such as 1 is parsed as a number.
  const parameters = given.map((each) => typeof each.name === 'number' ? { ...each, name: String(each.name) } : each)
    .filter((parameter) => !isReservedHeader(parameter))
  for (const parameter of parameters) assertValid(parameter)
  const declared = new Set(parameters.filter((each) => each.in === 'path').map(({ name }) => name))
  const { path, names: templateNames, withSlashes } = readPathTemplate(template, declared)
  for (const name of templateNames) {
    if (!declared.has(name)) parameters.push({ name, in: 'path', schema: { type: 'string' } })
  }
  const isUsed = ({ in: location, name }: ParameterObject): boolean =>
    location !== 'path' || templateNames.has(String(name))
  const used = locations.flatMap((location) =>
    parameters
      .filter((parameter) => parameter.in === location && isUsed(parameter))
      .map((parameter) => ({ parameter, location }))
  )
  names.expect(used.map(({ parameter }) => String(parameter.name)))
  const described = used.map(({ parameter, location }) => describeParameter(parameter, location, names, schemas))
  for (const { parameter } of described) {
    if (parameter.in === 'path' && withSlashes.has(parameter.name)) parameter.withSlashes = true
  }
  return {
    path, parameters: described, unplaced: parameters.filter((each) => !isUsed(each)).map(({ name }) => String(name))
  }
}

const isReservedHeader = ({ in: location, name }: ParameterObject): boolean =>
  location === 'header' && typeof name === 'string' && reservedHeaders.has(name.toLowerCase())

function assertValid ({ in: location, name }: ParameterObject): void {
  if (typeof name !== 'string' || name === '' || !isLocation(location)) {
    throw new DescriptionError(`a parameter has no "name", or no "in" that is one of ${locations.join(', ')}`)
  }
  if (location === 'header' && !isHeaderName(name)) {
    throw new DescriptionError(`${JSON.stringify(name)} is not a valid header name`)
  }
  if (location === 'cookie' && /[\s;,=]/.test(name)) {
    throw new DescriptionError(`${JSON.stringify(name)} is not a valid cookie name`)
  }
}

function describeParameter (
  given: ParameterObject,
  location: ParameterLocation,
  names: ArgumentNames,
  schemas: SchemaConverter
): DescribedParameter {
  const name = String(given.name)
  const allowed = styles[location]
  const style = allowed.find((each) => each === given.style) ?? allowed[0] ?? 'form'
  const explode = typeof given.explode === 'boolean' ? given.explode : style === 'form'
  const parameter: Parameter = {
    argument: names.assign({ name, location }),
    name,
    in: location,
    style,
    // The style `deepObject` is always exploded.
    explode: style === 'deepObject' || explode
  }
  if (given.required === true || location === 'path') parameter.required = true
  if (given.allowReserved === true && location === 'query') parameter.allowReserved = true
  setInnerDelimiters(parameter, given)
  const [[mediaType, mediaTypeObject] = []] = isObject(given.content) ? Object.entries(given.content) : []
  if (mediaType !== undefined && isObject(mediaTypeObject) && bodyFormatOf(mediaType) === 'json') parameter.json = true
  const schema = schemas.convert(isObject(mediaTypeObject) ? mediaTypeObject.schema : given.schema)
  const description =
    descriptionWithRequestName(
      typeof given.description === 'string' ? given.description : undefined, name, parameter.argument
    )
  return { parameter, schema: description === undefined ? schema : { ...schema, description } }
}

/** Sets the delimiters of inner arrays that a parameter of Swagger 2.0, or an encoding made of one, states. */
export function setInnerDelimiters (serialization: Serialization, { innerDelimiters }: ParameterObject): void {
  if (!Array.isArray(innerDelimiters)) return
  const delimiters = innerDelimiters.filter((each) => typeof each === 'string')
  if (delimiters.length > 0) serialization.innerDelimiters = delimiters
}

/**
 * A path template in which all expressions have the form `{name}`. `names`: their names; `withSlashes`: the names of
 * parameters whose values may contain slashes.
 */
interface PathTemplate {
  readonly path: string, readonly names: ReadonlySet<string>, readonly withSlashes: ReadonlySet<string>
}

/**
 * Matches parameters in other notations: `:id`, `:id(\\d+)` at the start of a segment (Express), `<id>`, `<int:id>`
 * (Flask).
 */
const otherNotations = /(?<=\/):([\w-]+)(?:\([^()]*\))?|<(?:(\w+)(?:\([^()]*\))?:)?([\w-]+)>/g

/**
 * Parses a path template. The name in an expression, `{…}`, may be surrounded by the notation of a web framework, such
 * as `{path*}`. Parameters in the notations of Express and Flask are recognized if a parameter of that name is
 * declared; otherwise they are literal text.
 * @param declared the names of the operation's path parameters. If a declared name equals the whole text of an
 *   expression, it is the name in that expression.
 */
function readPathTemplate (template: string, declared: ReadonlySet<unknown>): PathTemplate {
  const names = new Set<string>()
  const withSlashes = new Set<string>()
  const place = (written: string, express?: string, converter?: string, flask?: string): string => {
    const name =
      [express ?? flask, /^\w+/.exec(express ?? '')?.[0]].find((each) => each !== undefined && declared.has(each))
    if (name === undefined) return written
    names.add(name)
    if (converter === 'path') withSlashes.add(name)
    return `{${name}}${express?.slice(name.length) ?? ''}`
  }
  const path = piecesOf(template).map((piece) => {
    if (!isExpression(piece)) return piece.replace(otherNotations, place)
    const whole = piece.slice(1, -1)
    const { name: bare, isGreedy } = readExpression(whole)
    const name = declared.has(whole) || bare === '' ? whole : bare
    names.add(name)
    if (isGreedy) withSlashes.add(name)
    return `{${name}}`
  }).join('')
  return { path, names, withSlashes }
}

/**
 * Finds the name in an expression in the notation of a web framework: `*path`, `**path`, `path*`, `proxy+`, `+path`,
 * `rest:.*`, `id:int`, `name=shelves/*`, `id?`. `isGreedy`: the value may contain slashes.
 */
function readExpression (whole: string): { name: string, isGreedy: boolean } {
  const end = whole.search(/[:=]/)
  const marked = end === -1 ? whole : whole.slice(0, end)
  const pattern = end === -1 ? '' : whole.slice(end + 1)
  let first = 0
  let last = marked.length
  while (first < last && '*+'.includes(marked.charAt(first))) first++
  while (last > first && '*+?'.includes(marked.charAt(last - 1))) last--
  const isMarked = first > 0 || /[*+]/.test(marked.slice(last))
  return { name: marked.slice(first, last).trim(), isGreedy: isMarked || /\.[*+]|\/|\*\*/.test(pattern) }
}

const isExpression = (piece: string): boolean => piece.length > 2 && piece.startsWith('{') && piece.endsWith('}')

/** Splits a template into literals and expressions, `{…}`. A pattern within an expression may contain braces. */
function piecesOf (template: string): string[] {
  const pieces: string[] = []
  let start = 0
  let depth = 0
  for (let at = 0; at < template.length; at++) {
    const character = template[at]
    if (character === '{' && depth++ === 0) {
      pieces.push(template.slice(start, at))
      start = at
    } else if (character === '}' && depth > 0 && --depth === 0) {
      pieces.push(template.slice(start, at + 1))
      start = at + 1
    }
  }
  return [...pieces, template.slice(start)]
}
