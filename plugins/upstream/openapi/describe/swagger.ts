import { isObject } from '../../../../protocol/json.ts'

type Dict = Record<string, unknown>

const texts = (value: unknown): string[] => Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []

/** How Swagger's `collectionFormat` is called in OpenAPI 3. */
function writingOf (format: unknown, place: string): { style: string, explode: boolean } {
  const single = place === 'query' || place === 'formData' ? 'form' : 'simple'
  switch (format) {
    case 'multi': return { style: single, explode: true }
    case 'ssv': return { style: 'spaceDelimited', explode: false }
    case 'pipes': return { style: 'pipeDelimited', explode: false }
    case 'tsv': return { style: 'tabDelimited', explode: false }
    default: return { style: single, explode: false }
  }
}

/** What stands between the elements of a list that is one part of a multipart form; OpenAPI 3 has no word for it. */
const delimiters: Readonly<Record<string, string>> = { csv: ',', ssv: ' ', tsv: '\t', pipes: '|' }

/** What of a parameter, or header, says what it is, as a schema. */
function schemaOf ({ name: _, in: __, required: ___, collectionFormat: ____, allowEmptyValue: _____, ...schema }: Dict): Dict {
  return schema
}

/** The servers of a Swagger 2.0 document: https before http; without a host, relative ones. */
export function swaggerServers ({ host, basePath, schemes }: Dict): unknown[] {
  const path = typeof basePath === 'string' ? basePath : '/'
  if (typeof host !== 'string' || host === '') return [{ url: path }]
  const known = texts(schemes)
  const scheme = known.includes('https') ? 'https:' : known.includes('http') ? 'http:' : ''
  return [{ url: `${scheme}//${host}${path.startsWith('/') ? path : `/${path}`}` }]
}

/** An operation of Swagger 2.0 as OpenAPI 3.0 has it: its body and form fields are a request body. */
export function swaggerOperation (
  operation: Dict,
  parameters: readonly Dict[],
  document: Dict
): { parameters: Dict[]; requestBody: Dict | undefined } {
  const consumes = texts(operation.consumes ?? document.consumes)
  const form: Dict[] = []
  const rest: Dict[] = []
  let requestBody: Dict | undefined
  for (const parameter of parameters) {
    if (parameter.in === 'body') {
      const types = consumes.length > 0 ? consumes : ['application/json']
      requestBody = {
        required: parameter.required,
        description: parameter.description,
        content: Object.fromEntries(types.map((type) => [type, { schema: parameter.schema }]))
      }
    } else if (parameter.in === 'formData') form.push(parameter)
    else {
      const schema = schemaOf(parameter)
      const { name, in: place, required, description, collectionFormat } = parameter
      rest.push({
        name,
        in: place,
        required,
        description,
        schema,
        ...(schema.type === 'array' ? writingOf(collectionFormat, String(place)) : {})
      })
    }
  }
  return { parameters: rest, requestBody: form.length > 0 ? formBody(form, consumes) : requestBody }
}

function formBody (form: readonly Dict[], consumes: readonly string[]): Dict {
  const multipart = 'multipart/form-data'
  const urlencoded = 'application/x-www-form-urlencoded'
  const type =
    form.some((field) => field.type === 'file') || (consumes.includes(multipart) && !consumes.includes(urlencoded)) ? multipart : urlencoded
  const required = form.filter((field) => field.required === true).map(({ name }) => name)
  const properties = Object.fromEntries(form.map((field) => [String(field.name), schemaOf(field)]))
  const encoding = Object.fromEntries(
    form
      .filter((field) => field.type === 'array')
      .map((field) => [
        String(field.name),
        type === multipart
          ? { delimiter: delimiters[String(field.collectionFormat ?? 'csv')] }
          : writingOf(field.collectionFormat, 'formData')
      ])
  )
  return { required: required.length > 0, content: { [type]: { schema: { type: 'object', properties, required }, encoding } } }
}

/** The security schemes of a Swagger 2.0 document as OpenAPI 3.0 has them, in so far as they are used. */
export function swaggerSchemes ({ securityDefinitions }: Dict): Dict {
  if (!isObject(securityDefinitions)) return {}
  return Object.fromEntries(Object.entries(securityDefinitions).map(([name, scheme]) => {
    if (!isObject(scheme) || scheme.type !== 'oauth2') return [name, scheme]
    return [name, { type: 'oauth2', flows: scheme.flow === 'application' ? { clientCredentials: { tokenUrl: scheme.tokenUrl } } : {} }]
  }))
}
