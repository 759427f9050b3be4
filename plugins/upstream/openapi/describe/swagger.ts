// Converts the parts of Swagger 2.0 that differ from OpenAPI 3.0.
import { isObject } from '../../../../protocol/json.ts'
import { DescriptionError } from '../plan.ts'

type Dict = Record<string, unknown>

const stringsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []

/** Returns the OpenAPI 3 serialization for a `collectionFormat` in a location (`in` of the parameter). */
function serializationOf (collectionFormat: unknown, location: unknown): { style: string, explode: boolean } {
  const defaultStyle = location === 'query' || location === 'formData' ? 'form' : 'simple'
  switch (collectionFormat) {
    case 'multi': return { style: defaultStyle, explode: true }
    case 'ssv': return { style: 'spaceDelimited', explode: false }
    case 'pipes': return { style: 'pipeDelimited', explode: false }
    case 'tsv': return { style: 'tabDelimited', explode: false }
    default: return { style: defaultStyle, explode: false }
  }
}

/**
 * The delimiter between the elements of an array that is one part of a multipart form, by `collectionFormat`. OpenAPI 3
 * cannot express this; it is passed on as `delimiter` in the Encoding Object.
 */
const delimiters: Readonly<Record<string, string>> = { csv: ',', ssv: ' ', tsv: '\t', pipes: '|' }

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
  const { name, in: location, required, description, collectionFormat } = parameter
  const serialization = schema.type === 'array' ? serializationOf(collectionFormat, location) : {}
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
  const encodingOf = ({ collectionFormat }: Dict): Dict =>
    isMultipart
      ? { delimiter: delimiters[typeof collectionFormat === 'string' ? collectionFormat : 'csv'] }
      : serializationOf(collectionFormat, 'formData')
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
