// Converts the parts of Swagger 2.0 that differ from OpenAPI 3.0.
import { isObject } from '../../../../protocol/json.ts'
import { DescriptionError } from '../plan.ts'

type Dict = Record<string, unknown>

const stringsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []

/**
 * Returns the OpenAPI 3 serialization for the `collectionFormat` of an array in a location (`in` of the parameter).
 * OpenAPI 3 cannot express that of arrays within the array; it is passed on as `innerDelimiters`.
 */
function serializationOf (
  { collectionFormat, items }: Dict, location: unknown
): { style: string, explode: boolean, innerDelimiters: string[] } {
  const defaultStyle = location === 'query' || location === 'formData' ? 'form' : 'simple'
  const innerDelimiters = innerDelimitersOf(items)
  switch (collectionFormat) {
    case 'multi': return { style: defaultStyle, explode: true, innerDelimiters }
    case 'ssv': return { style: 'spaceDelimited', explode: false, innerDelimiters }
    case 'pipes': return { style: 'pipeDelimited', explode: false, innerDelimiters }
    case 'tsv': return { style: 'tabDelimited', explode: false, innerDelimiters }
    default: return { style: defaultStyle, explode: false, innerDelimiters }
  }
}

/**
 * The delimiters by `collectionFormat`. OpenAPI 3 cannot express that of an array that is one part of a multipart form
 * either; it is passed on as `delimiter` in the Encoding Object.
 */
const delimiters: Readonly<Record<string, string>> = { csv: ',', ssv: ' ', tsv: '\t', pipes: '|' }

function innerDelimitersOf (items: unknown): string[] {
  if (!isObject(items) || items.type !== 'array') return []
  return [delimiters[String(items.collectionFormat)] ?? ',', ...innerDelimitersOf(items.items)]
}

/** Returns the schema of a parameter: the members that are schema keywords. */
function schemaOf ({
  name: _name,
  in: _in,
  required: _required,
  collectionFormat: _collectionFormat,
  allowEmptyValue: _allowEmptyValue,
  ...schema
}: Dict): Dict {
  return schema
}

/**
 * Returns the server of a Swagger 2.0 document as Server Objects. The URL has the scheme https if that is allowed;
 * without a `host`, the URL is a path.
 */
export function serversFromSwagger ({ host, basePath, schemes }: Dict): unknown[] {
  const path = typeof basePath === 'string' ? basePath : '/'
  if (typeof host !== 'string' || host === '') return [{ url: path }]
  return [{ url: `${schemeOf(stringsIn(schemes))}//${host}${path.startsWith('/') ? path : `/${path}`}` }]
}

/**
 * Returns the scheme of the server's URL. If neither https nor http is given, returns an empty text, so that the scheme
 * of the document's URL applies.
 */
function schemeOf (schemes: readonly string[]): string {
  if (schemes.includes('https')) return 'https:'
  return schemes.includes('http') ? 'http:' : ''
}

/**
 * Converts the parameters of a Swagger 2.0 operation, including its body and form fields, to the parameters and the
 * request body of an OpenAPI 3.0 operation.
 */
export function operationFromSwagger (
  operation: Dict,
  parameters: readonly Dict[],
  document: Dict
): { parameters: Dict[]; requestBody: Dict | undefined } {
  const consumes = stringsIn(operation.consumes ?? document.consumes)
  const formFields = parameters.filter((parameter) => parameter.in === 'formData')
  const body = parameters.findLast((parameter) => parameter.in === 'body')
  const others = parameters.filter((parameter) => parameter.in !== 'formData' && parameter.in !== 'body')
  let requestBody: Dict | undefined
  if (formFields.length > 0) requestBody = formBody(formFields, consumes)
  else if (body) requestBody = bodyOf(body, consumes)
  return { parameters: others.map(toParameter), requestBody }
}

function toParameter (parameter: Dict): Dict {
  const schema = schemaOf(parameter)
  const { name, in: location, required, description } = parameter
  const serialization = schema.type === 'array' ? serializationOf(parameter, location) : {}
  return { name, in: location, required, description, schema, ...serialization }
}

function bodyOf ({ required, description, schema }: Dict, consumes: readonly string[]): Dict {
  const types = consumes.length > 0 ? consumes : ['application/json']
  return { required, description, content: Object.fromEntries(types.map((type) => [type, { schema }])) }
}

/** Converts form fields to a request body of OpenAPI 3.0. @throws DescriptionError for a field without a name */
function formBody (fields: readonly Dict[], consumes: readonly string[]): Dict {
  const named = fields.map((field) => [fieldName(field), field] as const)
  const multipart = 'multipart/form-data'
  const urlencoded = 'application/x-www-form-urlencoded'
  const isOnlyMultipart = consumes.includes(multipart) && !consumes.includes(urlencoded)
  const isMultipart = isOnlyMultipart || fields.some((field) => field.type === 'file')
  const required = named.filter(([, field]) => field.required === true).map(([name]) => name)
  const properties = Object.fromEntries(named.map(([name, field]) => [name, schemaOf(field)]))
  const encodingOf = (field: Dict): Dict =>
    isMultipart
      ? { delimiter: delimiters[typeof field.collectionFormat === 'string' ? field.collectionFormat : 'csv'] }
      : serializationOf(field, 'formData')
  const arrays = named.filter(([, field]) => field.type === 'array')
  const encoding = Object.fromEntries(arrays.map(([name, field]) => [name, encodingOf(field)]))
  const schema = { type: 'object', properties, required }
  return { required: required.length > 0, content: { [isMultipart ? multipart : urlencoded]: { schema, encoding } } }
}

function fieldName ({ name }: Dict): string {
  if ((typeof name !== 'string' && typeof name !== 'number') || name === '') {
    throw new DescriptionError('a parameter has no "name"')
  }
  return String(name)
}

/** Returns the Security Scheme Objects for a Swagger 2.0 document; of OAuth, only the client credentials flow. */
export function securitySchemesFromSwagger ({ securityDefinitions }: Dict): Dict {
  if (!isObject(securityDefinitions)) return {}
  return Object.fromEntries(Object.entries(securityDefinitions).map(([name, scheme]) => {
    if (!isObject(scheme) || scheme.type !== 'oauth2') return [name, scheme]
    return [name, {
      type: 'oauth2', flows: scheme.flow === 'application' ? { clientCredentials: { tokenUrl: scheme.tokenUrl } } : {}
    }]
  }))
}
