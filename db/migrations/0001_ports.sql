CREATE TABLE "activities" (
	"id" uuid PRIMARY KEY NOT NULL,
	"timestamp" bigint NOT NULL,
	"server" text NOT NULL,
	"tool" text NOT NULL,
	"duration" double precision NOT NULL,
	"status" text NOT NULL,
	"input" text,
	"output" text,
	"group" text,
	"username" text,
	"key_id" text,
	"key_name" text,
	"source_ip" text,
	"error_message" text
);
--> statement-breakpoint
CREATE TABLE "grants" (
	"hash" text PRIMARY KEY NOT NULL,
	"family" text NOT NULL,
	"data" jsonb,
	"sealed" text,
	"taken" boolean DEFAULT false NOT NULL,
	"expires" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "token_families" (
	"family" text PRIMARY KEY NOT NULL,
	"client_id" text,
	"username" text,
	"revoked" boolean DEFAULT false NOT NULL,
	"expires" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tokens" (
	"hash" text PRIMARY KEY NOT NULL,
	"family" text NOT NULL,
	"kind" text NOT NULL,
	"scope" text NOT NULL,
	"resource" text,
	"used" boolean DEFAULT false NOT NULL,
	"expires" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "vectors" (
	"collection" text NOT NULL,
	"key" text NOT NULL,
	"hash" text NOT NULL,
	"embedding" real[] NOT NULL,
	CONSTRAINT "vectors_collection_key_pk" PRIMARY KEY("collection","key")
);
--> statement-breakpoint
CREATE INDEX "activities_timestamp" ON "activities" USING btree ("timestamp","id");--> statement-breakpoint
CREATE INDEX "activities_username" ON "activities" USING btree ("username","timestamp");--> statement-breakpoint
CREATE INDEX "grants_expires" ON "grants" USING btree ("expires");--> statement-breakpoint
CREATE INDEX "token_families_client" ON "token_families" USING btree ("client_id");--> statement-breakpoint
CREATE INDEX "token_families_user" ON "token_families" USING btree ("username");--> statement-breakpoint
CREATE INDEX "token_families_expires" ON "token_families" USING btree ("expires");--> statement-breakpoint
CREATE INDEX "tokens_family" ON "tokens" USING btree ("family");--> statement-breakpoint
CREATE INDEX "tokens_expires" ON "tokens" USING btree ("expires");