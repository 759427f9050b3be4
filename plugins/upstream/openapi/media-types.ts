import type { RequestBody } from './plan.ts'

/** True for `application/json` and media types with the suffix `+json`. */
export const isJsonMediaType = (type: string): boolean => /^[^;]*[/+]json\s*(;|$)/i.test(type)

/** The format in which values of a media type are written. */
export const bodyFormatOf = (mediaType: string): RequestBody['format'] => {
  const essence = mediaType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (isJsonMediaType(essence) || essence === '*/*') return 'json'
  if (essence === 'application/x-www-form-urlencoded') return 'urlencoded'
  if (essence.startsWith('multipart/')) return 'multipart'
  return /^text\/|[/+](xml|yaml|x-yaml|graphql|javascript|x-ndjson)$/.test(essence) ? 'text' : 'binary'
}
