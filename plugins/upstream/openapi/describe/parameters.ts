import { isObject } from '../../../../protocol/json.ts'
import { isHeaderName } from '../headers.ts'
import type { JsonSchema } from './keywords.ts'
import { bodyFormatOf } from './media.ts'
import type { ArgumentNames } from './names.ts'
import type { Parameter, ParameterLocation, Style } from '../plan.ts'
import { DescriptionError } from '../problems.ts'
import type { SchemaConverter } from './schema.ts'

const places: readonly ParameterLocation[] = ['path', 'query', 'header', 'cookie']
const isPlace = (value: unknown): value is ParameterLocation => places.includes(value as ParameterLocation)

/** The styles of each place; the first one is meant where none is given. The last rows are Swagger's. */
const styles: Readonly<Record<ParameterLocation, readonly Style[]>> = {
  path: ['simple', 'label', 'matrix', 'spaceDelimited', 'pipeDelimited', 'tabDelimited'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject', 'tabDelimited'],
  header: ['simple', 'spaceDelimited', 'pipeDelimited', 'tabDelimited'],
  cookie: ['form']
}

/** Headers that are not a parameter's to set: OpenAPI ignores the first three, the others belong to the connection. */
const reservedHeaders = new Set([
  'accept',
  'content-type',
  'authorization',
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'keep-alive',
  'upgrade',
  'te',
  'trailer',
  'expect',
  'proxy-authorization',
  'cookie'
])

/** A parameter of the request, and the schema of the argument that gives it. */
export interface DescribedParameter { parameter: Parameter, schema: JsonSchema }

/**
 * The parameters of an operation, in the order of their placement. What the path's template names and nobody describes is a string.
 * @param given parameters with their references resolved
 * @throws DescriptionError
 */
export function describeParameters (
  given: ReadonlyArray<Record<string, unknown>>,
  path: string,
  names: ArgumentNames,
  schemas: SchemaConverter
): DescribedParameter[] {
  const inPath = new Set([...path.matchAll(/\{([^{}]+)\}/g)].map(([, name = '']) => name))
  const all = given.filter(
    (each) => !(each.in === 'header' && typeof each.name === 'string' && reservedHeaders.has(each.name.toLowerCase()))
  )
  for (const { name, in: place } of all) {
    if (typeof name !== 'string' || name === '' || !isPlace(place)) {
      throw new DescriptionError(`a parameter has no "name", or no "in" that is one of ${places.join(', ')}`)
    }
    if (place === 'header' && !isHeaderName(name)) throw new DescriptionError(`no header can be named ${JSON.stringify(name)}`)
    if (place === 'cookie' && /[\s;,=]/.test(name)) throw new DescriptionError(`no cookie can be named ${JSON.stringify(name)}`)
  }
  const declared = new Set(all.filter((each) => each.in === 'path').map(({ name }) => name))
  for (const name of inPath) if (!declared.has(name)) all.push({ name, in: 'path', schema: { type: 'string' } })
  return places.flatMap((place) =>
    all
      .filter((each) => each.in === place && (place !== 'path' || inPath.has(String(each.name))))
      .map((each) => describe(each, place, names, schemas))
  )
}

function describe (
  given: Record<string, unknown>,
  place: ParameterLocation,
  names: ArgumentNames,
  schemas: SchemaConverter
): DescribedParameter {
  const name = String(given.name)
  const style = styles[place].find((each) => each === given.style) ?? styles[place][0] ?? 'form'
  const parameter: Parameter = {
    argument: names.assign(name, place),
    name,
    in: place,
    style,
    // A deep object is always taken apart.
    explode: style === 'deepObject' || (typeof given.explode === 'boolean' ? given.explode : style === 'form')
  }
  if (given.required === true || place === 'path') parameter.required = true
  if (given.allowReserved === true && place === 'query') parameter.allowReserved = true
  const [[type, content] = []] = isObject(given.content) ? Object.entries(given.content) : []
  if (type !== undefined && isObject(content) && bodyFormatOf(type) === 'json') parameter.json = true
  const schema = schemas.convert(isObject(content) ? content.schema : given.schema)
  return { parameter, schema: typeof given.description === 'string' ? { ...schema, description: given.description } : schema }
}
