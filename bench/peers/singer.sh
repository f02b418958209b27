#!/usr/bin/env bash
# Brings the export of wallet logs into Postgres with a Singer tap and target: tap-rest-api-msdk and
# meltanolabs-target-postgres, with the load method upsert. Prints the seconds of the pipe, with the start of both programs.
#
#   singer.sh TAP-VENV TARGET-VENV FOLDER
#
# The environment gives LOGS_URL, LOGS_TOKEN, PEER_HOST, PEER_PORT, PEER_USER and PEER_NAME (of the database).
set -euo pipefail

tap="$1/bin/tap-rest-api-msdk" target="$2/bin/target-postgres" folder="$3"
mkdir -p "$folder"
cat >"$folder/tap.json" <<JSON
{"api_url": "${LOGS_URL%/}", "auth_method": "bearer_token", "bearer_token": "$LOGS_TOKEN",
 "pagination_request_style": "jsonpath_paginator", "pagination_response_style": "page",
 "next_page_token_path": "\$.meta.next_cursor", "pagination_next_page_param": "cursor",
 "pagination_limit_per_page_param": "limit", "pagination_page_size": 1000,
 "streams": [{"name": "transactions", "path": "/wallet-logs", "primary_keys": ["id"], "records_path": "\$.data[*]",
              "params": {"limit": 1000}, "num_inference_records": 50}]}
JSON
cat >"$folder/target.json" <<JSON
{"host": "$PEER_HOST", "port": $PEER_PORT, "user": "$PEER_USER", "password": "unused", "database": "$PEER_NAME",
 "default_target_schema": "singer", "load_method": "upsert", "dialect+driver": "postgresql+psycopg",
 "batch_size_rows": 10000, "validate_records": false, "add_record_metadata": false, "activate_version": false}
JSON
"$tap" --config "$folder/tap.json" --discover >"$folder/catalog.json" 2>"$folder/discover.log"
begin="$(date +%s.%N)"
"$tap" --config "$folder/tap.json" --catalog "$folder/catalog.json" 2>"$folder/tap.log" |
  "$target" --config "$folder/target.json" >"$folder/state.json" 2>"$folder/target.log"
echo "$begin $(date +%s.%N)" | awk '{ printf "%.3f\n", $2 - $1 }'
